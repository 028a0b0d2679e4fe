#include "textflag.h"

// Go has no intrinsic for a pause in a spin loop. Without one the processor
// runs many loads ahead, has to take them back when the value changes, and
// leaves less to the other thread of its core.

// func pause()
TEXT ·pause(SB), NOSPLIT, $0-0
	PAUSE
	RET
