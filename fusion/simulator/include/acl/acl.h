// Stand-in for the host runtime's header: only the types that a generated launcher names.
#pragma once
using aclrtStream = void*;
