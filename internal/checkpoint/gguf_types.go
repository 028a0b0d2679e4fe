package checkpoint

import (
	"fmt"

	"github.com/foretoken/foretoken/internal/tensor"
)

// ggmlTypes are the tensor types of GGUF (enum ggml_type), by number. Those
// that the engine cannot decode are Invalid: they are refused by name.
var ggmlTypes = [...]struct {
	name  string
	dtype tensor.DType
}{
	0:  {"F32", tensor.F32},
	1:  {"F16", tensor.F16},
	2:  {"Q4_0", tensor.Q4_0},
	3:  {"Q4_1", tensor.Q4_1},
	4:  {"Q4_2", tensor.Invalid},
	5:  {"Q4_3", tensor.Invalid},
	6:  {"Q5_0", tensor.Q5_0},
	7:  {"Q5_1", tensor.Q5_1},
	8:  {"Q8_0", tensor.Q8_0},
	9:  {"Q8_1", tensor.Invalid}, // 9 and 15: activations, never stored
	10: {"Q2_K", tensor.Q2_K},
	11: {"Q3_K", tensor.Q3_K},
	12: {"Q4_K", tensor.Q4_K},
	13: {"Q5_K", tensor.Q5_K},
	14: {"Q6_K", tensor.Q6_K},
	15: {"Q8_K", tensor.Invalid},
	16: {"IQ2_XXS", tensor.Invalid},
	17: {"IQ2_XS", tensor.Invalid},
	18: {"IQ3_XXS", tensor.Invalid},
	19: {"IQ1_S", tensor.Invalid},
	20: {"IQ4_NL", tensor.IQ4_NL},
	21: {"IQ3_S", tensor.Invalid},
	22: {"IQ2_S", tensor.Invalid},
	23: {"IQ4_XS", tensor.IQ4_XS},
	24: {"I8", tensor.I8},
	25: {"I16", tensor.I16},
	26: {"I32", tensor.I32},
	27: {"I64", tensor.I64},
	28: {"F64", tensor.F64},
	29: {"IQ1_M", tensor.Invalid},
	30: {"BF16", tensor.BF16},
	31: {"Q4_0_4_4", tensor.Invalid}, // 31 to 33 and 36 to 38: withdrawn
	32: {"Q4_0_4_8", tensor.Invalid},
	33: {"Q4_0_8_8", tensor.Invalid},
	34: {"TQ1_0", tensor.Invalid},
	35: {"TQ2_0", tensor.Invalid},
	36: {"IQ4_NL_4_4", tensor.Invalid},
	37: {"IQ4_NL_4_8", tensor.Invalid},
	38: {"IQ4_NL_8_8", tensor.Invalid},
	39: {"MXFP4", tensor.MXFP4},
	40: {"NVFP4", tensor.Invalid},
}

func dtypeOfGGML(t uint32) (tensor.DType, error) {
	if int64(t) >= int64(len(ggmlTypes)) {
		return tensor.Invalid, fmt.Errorf("unknown tensor type %d", t)
	}
	if ggmlTypes[t].dtype == tensor.Invalid {
		return tensor.Invalid, fmt.Errorf("tensor type %s is not supported", ggmlTypes[t].name)
	}
	return ggmlTypes[t].dtype, nil
}

func ggmlTypeOf(d tensor.DType) (uint32, error) {
	for t, known := range ggmlTypes {
		if known.dtype == d && d != tensor.Invalid {
			return uint32(t), nil
		}
	}
	return 0, fmt.Errorf("GGUF has no tensor type for %v", d)
}
