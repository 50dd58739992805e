// The engine's cold half, compiled once and linked to every simulated kernel.
#include "ascendc/mmad.inl"
#include "sim/flags.inl"
#include "sim/issue.inl"
#include "sim/job.inl"
#include "sim/report.inl"

int main(int argc, char** argv) {
  if (argc != 2) sim::stop("usage: kernel JOB");
  return sim::run_job(argv[1]);
}
