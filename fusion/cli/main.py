"""`fusion-plan`: the table of commands, each imported when it is called, and what a user's mistake looks like."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

import click

from fusion.errors import FusionError, did_you_mean, near

COMMANDS: dict[str, tuple[str, str]] = {
    "plan": ("fusion.cli.plan:plan", "Plan, emit and lower an operator; what happens without a command."),
    "list": ("fusion.cli.listing:operators", "The operators that come with the toolkit."),
    "show": ("fusion.cli.show:show", "An operator's stage graph as text, JSON, Graphviz or Mermaid."),
    "passes": ("fusion.cli.listing:passes", "The passes, or all about one."),
    "verify": ("fusion.cli.verify:verify", "Run the generated code on the CPU and check numbers and order."),
    "compare": ("fusion.cli.compare:compare", "Set the plans of an operator side by side."),
    "check": ("fusion.cli.check:check", "Check a kernel that was written by hand."),
    "calibrate": ("fusion.cli.calibrate:calibrate", "Fit the cost model to measured times."),
    "toolchain": ("fusion.cli.toolchain:toolchain", "The TileLang-Ascend compiler: found on this machine or installed for it."),
}
"""Where each command is and what it does; those whose module is not there are left out."""

HELP = """Plan, emit and lower fused TileLang operators for Ascend NPUs.

`fusion-plan OPERATOR --target N` plans the operator in N kernels, lowers them and writes out/OPERATOR-N. OPERATOR is a name from
`fusion-plan list`, or path/to/op.py[:name]. `fusion-plan plan --help` lists the options.
"""


class Commands(click.Group):
    """A group that imports a command when it is called; a first argument that is no command is an operator."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, (target, _) in COMMANDS.items() if find_spec(target.split(":")[0])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in ("--help", "--version") and args[0] not in self.list_commands(ctx):
            args = ["plan", *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=Commands, help=HELP, context_settings={"help_option_names": ["--help"], "max_content_width": 120})
@click.version_option(package_name="fusion-plan", message="%(version)s")
def cli() -> None:
    pass


def main() -> None:
    """The console script: a mistake of the user's is one or two lines on standard error and exit status 2."""
    try:
        from fusion.cli.ownership import check_packages

        check_packages()
        cli.main(standalone_mode=False)
    except FusionError as error:
        _fail(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else HELP)
    except click.NoSuchOption as error:
        _fail(f"no option {error.option_name}", _option_remedy(error))
    except click.ClickException as error:
        _fail(error.format_message(), f"see `{error.ctx.command_path} --help`" if isinstance(error, click.UsageError) and error.ctx else "")
    except (click.Abort, KeyboardInterrupt):
        _fail("stopped", status=130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        if error.filename is None:
            raise
        _fail(f"{error.filename}: {error.strerror}", "name a file or folder that can be read or written")


def _option_remedy(error: click.NoSuchOption) -> str:
    """The near options of the command; where none is near, its help."""
    if error.ctx is None:
        return ""
    options = [name for p in error.ctx.command.get_params(error.ctx) for name in p.opts if name.startswith("--")]
    help_page = f"see `{error.ctx.command_path} --help`"
    return did_you_mean(error.option_name, options, help_page) if near(error.option_name, options) else help_page


def _fail(what: str, remedy: str = "", status: int = 2) -> None:
    click.echo(f"fusion-plan: {what}" + (f"\n  {remedy}" if remedy else ""), err=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
