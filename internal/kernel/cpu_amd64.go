package kernel

import "golang.org/x/sys/cpu"

// archTiers are the tiers of this architecture, whatever the machine.
var archTiers = []Tier{Generic, AVX2, AVX512}

// machine returns the CPUs that this machine can be, from plain Go to its
// best. The flags of x/sys/cpu include the system's support for the wide
// registers (XCR0).
func machine() []CPU {
	x := &cpu.X86
	have := []CPU{{Tier: Generic}}
	if !x.HasAVX || !x.HasAVX2 || !x.HasFMA || !x.HasF16C {
		return have
	}
	have = append(have, CPU{Tier: AVX2})
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI {
		have = append(have, CPU{Tier: AVX512, BF16: x.HasAVX512BF16})
	}
	return have
}
