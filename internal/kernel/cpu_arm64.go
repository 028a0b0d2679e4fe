package kernel

import "golang.org/x/sys/cpu"

// archTiers are the tiers of this architecture, whatever the machine.
var archTiers = []Tier{Generic, NEON}

// machine returns the CPUs that this machine can be, from plain Go to its
// best. Every arm64 processor that Go runs on has NEON.
func machine() []CPU {
	return []CPU{{Tier: Generic}, {Tier: NEON, DotProd: cpu.ARM64.HasASIMDDP}}
}
