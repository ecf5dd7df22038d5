// SPDX-License-Identifier: MIT
// The end of a stack for exceptions, where unwinders are those of the Itanium C++ ABI. Layer core.
//
// It is the personality of cede_entry's frame, the last one of every process. In the search phase
// nothing has been unwound yet: after the line, the search finds the end of the stack and
// std::terminate is called where the exception was thrown, with every frame in place. A forced
// unwinding (a cancelled thread) has no search phase and passes.
#include "target.h"

#include <unwind.h>

extern "C" _Unwind_Reason_Code cede_entry_personality(int, _Unwind_Action actions,
                                                      _Unwind_Exception_Class, _Unwind_Exception*,
                                                      _Unwind_Context* context) {
  if (actions & _UA_SEARCH_PHASE)
    cede_report_escape(reinterpret_cast<const void*>(_Unwind_GetCFA(context) - 16));
  return _URC_CONTINUE_UNWIND;
}
