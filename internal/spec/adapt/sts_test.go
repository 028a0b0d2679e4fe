package adapt

import (
	"math"
	"math/rand/v2"
	"testing"
)

// chains are rounds of a drafter whose confidences' log-odds are too large by a
// factor for each position.
func chains(k *calibration, rounds int, factor []float64) { chainsOf(k, 99, rounds, factor) }

func chainsOf(k *calibration, seed uint64, rounds int, factor []float64) {
	r := rand.New(rand.NewPCG(seed, 5))
	confidence := make([]float64, len(factor))
	for range rounds {
		accepted, going := 0, true
		for i, f := range factor {
			p := logistic(1.2 + 1.5*r.NormFloat64())
			confidence[i] = logistic(f * logit(p))
			if going = going && r.Float64() < p; going {
				accepted++
			}
		}
		k.add(confidence, accepted)
	}
}

// The temperatures that made confidences too sure are found, position by
// position.
func TestTemperaturesAreFound(t *testing.T) {
	factor := []float64{2, 1.5, 1, 3, 2}
	k := new(calibration)
	chains(k, 2000, factor)
	for i, f := range factor {
		got := 1 / k.scale(i)
		if math.Abs(math.Log(got/f)) > 0.35 {
			t.Errorf("position %d has temperature %.2f, expected %.2f", i, got, f)
		}
	}
	for i := len(factor); i < stsDepth; i++ {
		if k.inverse[i] != 0 {
			t.Errorf("position %d, of which there are no rounds, has temperature %v", i, 1/k.inverse[i])
		}
	}
}

// The expected calibration error falls by about as much as DSpark says: from 8 %
// to 2 %.
func TestCalibrationErrorFalls(t *testing.T) {
	factor := []float64{2.5, 2.5, 2.5, 2.5, 2.5}
	k := new(calibration)
	chains(k, 2000, factor)
	for i := range factor {
		before := new(calibration).errorAt(i, factor)
		after := k.errorAt(i, factor)
		t.Logf("position %d: error %.1f %%, then %.1f %% at temperature %.2f", i, 100*before, 100*after, 1/k.scale(i))
		if before < 0.03 || after > 0.4*before {
			t.Errorf("position %d: error %.3f, then %.3f", i, before, after)
		}
	}
}

// errorAt is the calibration error of a position over many more rounds.
func (k *calibration) errorAt(position int, factor []float64) float64 {
	all := new(calibration)
	all.inverse = k.inverse
	for seed := range uint64(20) {
		some := new(calibration)
		chainsOf(some, seed, stsRounds, factor)
		all.rounds = append(all.rounds, some.rounds...)
	}
	all.product = make([]float64, len(all.rounds))
	for i := range all.product {
		all.product[i] = 1
		for j := range position {
			all.product[i] *= logistic(float64(all.rounds[i].logit[j]) * all.scale(j))
		}
	}
	return all.miss(position, all.scale(position))
}

// Confidences as they should be stay as they are.
func TestWhatIsCalibratedStays(t *testing.T) {
	k := new(calibration)
	if got := k.apply(1, 0.7); got != 0.7 {
		t.Errorf("0.7 is %v before anything was fitted", got)
	}
	chains(k, 2000, []float64{1, 1, 1})
	for depth := 1; depth <= 3; depth++ {
		for _, p := range []float64{0.1, 0.5, 0.8, 0.95} {
			if got := k.apply(depth, p); math.Abs(got-p) > 0.06 {
				t.Errorf("depth %d: %v became %.3f", depth, p, got)
			}
		}
	}
}

// Depths that few rounds verified are left alone, and rounds that were cut say
// nothing of what was not verified.
func TestCutRoundsSayNothingOfTheRest(t *testing.T) {
	k := new(calibration)
	for range stsRounds {
		k.add([]float64{0.8, 0.8}, 2) // all that was verified was accepted
	}
	if k.inverse[2] != 0 {
		t.Errorf("position 2 has temperature %v", 1/k.inverse[2])
	}
	if got := k.apply(1, 0.8); got < 0.9 {
		t.Errorf("0.8 that is always right is taken as %v", got)
	}
}
