#include "textflag.h"

// Go has no intrinsic for a pause in a spin loop. YIELD, meant for that, does
// nothing on most cores; a barrier that empties the pipeline waits some 10 ns.

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	ISB $15
	RET
