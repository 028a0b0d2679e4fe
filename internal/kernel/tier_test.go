package kernel

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tiers lists what this machine can be: each tier bare and with all that the
// processor adds to it.
func tiers() []CPU {
	var list []CPU
	for _, c := range machine() {
		if bare := (CPU{Tier: c.Tier}); bare != c {
			list = append(list, bare)
		}
		list = append(list, c)
	}
	return list
}

// eachTier runs f once on every tier of this machine. f must not run in
// parallel with other tests: active is the process's.
func eachTier(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	for _, c := range tiers() {
		t.Run(c.String(), func(t *testing.T) {
			saved := active
			t.Cleanup(func() { active = saved })
			active = kernelsFor(c)
			f(t)
		})
	}
}

func TestEachTierExchangesAndRestores(t *testing.T) {
	before := ThisCPU()
	var seen []CPU
	eachTier(t, func(*testing.T) { seen = append(seen, ThisCPU()) })
	if diff := cmp.Diff(tiers(), seen); diff != "" {
		t.Errorf("tiers run (-want +got):\n%s", diff)
	}
	if seen[0] != (CPU{}) {
		t.Errorf("the first tier is %v, want generic", seen[0])
	}
	if ThisCPU() != before {
		t.Errorf("afterwards the tier is %v, want %v", ThisCPU(), before)
	}
}

func TestChooseCPU(t *testing.T) {
	full := CPU{Tier: AVX512, BF16: true}
	laptop := []CPU{{Tier: Generic}, {Tier: AVX2}}
	server := []CPU{{Tier: Generic}, {Tier: AVX2}, full}
	for _, test := range []struct {
		name  string
		have  []CPU
		want  CPU
		fails string // what the error says the machine has
	}{
		{"", laptop, CPU{Tier: AVX2}, ""},
		{"", server, full, ""},
		{"generic", server, CPU{}, ""},
		{"avx2", server, CPU{Tier: AVX2}, ""},
		{"avx512", server, full, ""},
		{"avx512", laptop, CPU{}, "this machine has generic, avx2"},
		{"AVX2", laptop, CPU{}, "this machine has generic, avx2"},
		{"sse", server, CPU{}, "this machine has generic, avx2, avx512 (vnni, bf16)"},
	} {
		got, err := choose(test.name, test.have)
		if got != test.want {
			t.Errorf("FORETOKEN_CPU=%s of %v: %v, want %v", test.name, test.have, got, test.want)
		}
		switch {
		case test.fails == "":
			if err != nil {
				t.Errorf("FORETOKEN_CPU=%s of %v: %v", test.name, test.have, err)
			}
		case err == nil || !strings.HasPrefix(err.Error(), `FORETOKEN_CPU "`+test.name+`": expected generic`) || !strings.HasSuffix(err.Error(), test.fails):
			t.Errorf("FORETOKEN_CPU=%s of %v: error %v, want one that ends in %q", test.name, test.have, err, test.fails)
		}
	}
}

// The environment decides what this process runs on.
func TestThisCPU(t *testing.T) {
	have := machine()
	want, err := choose(os.Getenv("FORETOKEN_CPU"), have)
	if ThisCPU() != want || (CPUError() == nil) != (err == nil) {
		t.Errorf("this process runs on %v, %v; want %v, %v", ThisCPU(), CPUError(), want, err)
	}
	for _, c := range have {
		if !slices.Contains(archTiers, c.Tier) {
			t.Errorf("%v is not among the tiers of this architecture, %v", c.Tier, archTiers)
		}
	}
}

func TestCPUString(t *testing.T) {
	for want, c := range map[string]CPU{
		"generic":             {},
		"avx2":                {Tier: AVX2},
		"avx512 (vnni)":       {Tier: AVX512},
		"avx512 (vnni, bf16)": {Tier: AVX512, BF16: true},
		"neon":                {Tier: NEON},
		"neon (dotprod)":      {Tier: NEON, DotProd: true},
	} {
		if got := c.String(); got != want {
			t.Errorf("%#v is called %q, want %q", c, got, want)
		}
	}
}
