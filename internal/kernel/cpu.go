package kernel

import (
	"fmt"
	"os"
	"strings"
)

// A Tier is an instruction set that kernels are written for.
type Tier uint8

// Tiers, from plain Go on. A machine runs the best it has.
const (
	Generic Tier = iota
	NEON         // arm64
	AVX2         // amd64 with AVX2, FMA and F16C
	AVX512       // amd64 with AVX-512 F, BW, DQ, VL and VNNI
)

func (t Tier) String() string { return [...]string{"generic", "neon", "avx2", "avx512"}[t] }

// A CPU is what the kernels of a process run on.
type CPU struct {
	Tier    Tier
	BF16    bool // AVX512: AVX512_BF16
	DotProd bool // NEON: SDOT
}

// String names the tier and what kernels use beyond it, as in
// "avx512 (vnni, bf16)".
func (c CPU) String() string {
	var with []string
	if c.Tier == AVX512 {
		with = append(with, "vnni")
	}
	if c.BF16 {
		with = append(with, "bf16")
	}
	if c.DotProd {
		with = append(with, "dotprod")
	}
	if len(with) == 0 {
		return c.Tier.String()
	}
	return fmt.Sprintf("%v (%s)", c.Tier, strings.Join(with, ", "))
}

// kernels are the functions that a CPU runs; every field is set.
type kernels struct {
	cpu       CPU
	rows      rowKernels
	attention attentionKernels
	entries   entryKernels
	indexer   indexerKernels
	panels    panelKernels
}

func kernelsFor(c CPU) kernels {
	return kernels{c, rowsFor(c), attentionFor(c), entriesFor(c), indexerFor(c), panelsFor(c)}
}

// active is what this process runs on. Tests exchange it to run every tier
// that the machine has.
var active = kernelsFor(detect())

// cpuError says why FORETOKEN_CPU could not be obeyed. detect sets it while
// the package is initialised.
var cpuError error

// detect chooses the best of the machine's tiers, or the one that
// FORETOKEN_CPU names.
func detect() (c CPU) {
	c, cpuError = choose(os.Getenv("FORETOKEN_CPU"), machine())
	return c
}

// choose returns the CPU whose tier has the given name, the last one if name
// is empty, or plain Go and an error if there is none.
func choose(name string, have []CPU) (CPU, error) {
	if name == "" {
		return have[len(have)-1], nil
	}
	for _, c := range have {
		if c.Tier.String() == name {
			return c, nil
		}
	}
	expected := make([]string, len(archTiers))
	for i, t := range archTiers {
		expected[i] = t.String()
	}
	has := make([]string, len(have))
	for i, c := range have {
		has[i] = c.String()
	}
	return CPU{}, fmt.Errorf("FORETOKEN_CPU %q: expected %s; this machine has %s",
		name, strings.Join(expected, " or "), strings.Join(has, ", "))
}

// ThisCPU returns what the kernels of this process run on: the best tier that
// the processor and the system support, or the one that the environment
// variable FORETOKEN_CPU names.
func ThisCPU() CPU { return active.cpu }

// CPUError reports a FORETOKEN_CPU that names no tier or one that this machine
// lacks; ThisCPU is Generic then.
func CPUError() error { return cpuError }
