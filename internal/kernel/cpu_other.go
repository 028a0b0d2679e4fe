//go:build !amd64 && !arm64

package kernel

// archTiers are the tiers of this architecture, whatever the machine.
var archTiers = []Tier{Generic}

// machine returns the CPUs that this machine can be.
func machine() []CPU { return []CPU{{Tier: Generic}} }
