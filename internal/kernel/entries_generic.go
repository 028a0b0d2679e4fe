package kernel

import (
	"unsafe"

	"github.com/foretoken/foretoken/internal/tensor"
)

// packEntries packs the keys, or the values, of a block of entries, given by
// lane, as kvLayout arranges them. They are bytes long and begin offset bytes
// behind what entries point to.
type packEntries func(panel []byte, entries *[KVBlock]*byte, offset, bytes int)

// entryKernels are packEntries by kind. Those of values may require that
// their number is a multiple of valueUnit.
type entryKernels struct{ keys, values [kvKinds]packEntries }

// entriesGeneric is plain Go.
var entriesGeneric = entryKernels{
	keys:   [kvKinds]packEntries{genericKeys(kvF32), genericKeys(kvF16), genericKeys(kvBF16), genericKeys(kvQ8), genericKeys(kvPairs)},
	values: [kvKinds]packEntries{genericValues(kvF32, tensor.F32), genericValues(kvF16, tensor.F16), genericValues(kvBF16, tensor.BF16), genericValues(kvQ8, tensor.Q8_0), genericValues(kvPairs, tensor.BF16)},
}

func genericKeys(kind kvKind) packEntries {
	return func(panel []byte, entries *[KVBlock]*byte, offset, bytes int) {
		l := kvLayout{kind: kind}
		for lane, entry := range entries {
			l.putKey(panel, lane, part(entry, offset, bytes))
		}
	}
}

func genericValues(kind kvKind, d tensor.DType) packEntries {
	return func(panel []byte, entries *[KVBlock]*byte, offset, bytes int) {
		l := kvLayout{kind: kind, size: d.BlockBytes(), valueDim: bytes / d.BlockBytes()}
		for lane, entry := range entries {
			l.putValue(panel, lane, part(entry, offset, bytes))
		}
	}
}

func part(entry *byte, offset, bytes int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(entry), offset)), bytes)
}

// atLeast is pack for keys that are as long as what it takes at once, plain Go
// for shorter ones.
func atLeast(least int, pack packEntries, kind kvKind) packEntries {
	return func(panel []byte, entries *[KVBlock]*byte, offset, bytes int) {
		if bytes < least {
			entriesGeneric.keys[kind](panel, entries, offset, bytes)
		} else {
			pack(panel, entries, offset, bytes)
		}
	}
}
