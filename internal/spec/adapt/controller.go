// Package adapt decides, for every step, which drafter drafts for which
// request, how deep, and what of it is verified: the confidence scheduler
// (DSpark 5 and algorithm 1) for any drafter, with the drafter's own confidences
// or with none. It knows no clock, no randomness and no goroutine: what it
// decides is a function of what it was told.
//
// Verification keeps the target's text or its law if what is cut depends on no
// token that was drawn to be accepted with the probability p/q, or on anything
// that was drawn after it:
//
//   - Choose reads what was learned in earlier rounds, whose noise this one does
//     not see again, and drafts that were chosen and not drawn.
//   - What a node's survival is estimated by is its place in the draft, the
//     confidence and the peak of its distribution, which are those of the tokens
//     before it. What was learned is of earlier rounds.
//   - Admit cuts by package spec's admission, which looks beyond a step that does
//     not pay only if nothing in the batch was drawn.
//   - More ends passes by the drafts so far only if nothing was drawn, or for a
//     sequence alone: see there.
package adapt

import (
	"time"

	"github.com/foretoken/foretoken/internal/spec"
)

// An Arm is a drafter as the controller sees it.
type Arm struct {
	Name  string
	Depth int  // most tokens of a path
	Free  bool // costs nothing beside a step: it has proposed before Choose
	Block bool // one pass proposes all depths; else each depth is a pass
}

// A Config says what a controller decides by.
type Config struct {
	Arms []Arm // in the order in which Fixed prefers them
	// Fixed adapts nothing: the first arm that offers something drafts as deep as
	// it may, and all is verified.
	Fixed bool
	// Async fixes how many tokens are verified by what was best two steps
	// earlier, and only which of them by the drafts at hand (DSpark's production
	// form): that keeps the law whatever the curve of step times, without the
	// break of algorithm 1.
	Async bool
	Steps *Steps
}

// A Request is what is learned of one request. The zero value knows nothing.
type Request struct {
	arms  []correction
	depth int  // that was chosen for the step
	must  bool // its draft is a probe: its first token is verified whether it pays or not
}

// An Ask is a sequence that decodes in the step to come.
type Ask struct {
	Request      *Request
	Temperature  float32
	Allowed      uint64 // bit i: arm i may be used
	Depth, Nodes int    // most tokens of a path and of a draft
	// Offers has the draft of each arm that is Free; nil or empty: it has nothing
	// to offer.
	Offers []*spec.Draft
}

// offer is what a free arm offers, nil if nothing.
func (a *Ask) offer(arm int) *spec.Draft {
	if a.Allowed>>arm&1 == 0 || arm >= len(a.Offers) || a.Offers[arm] == nil || a.Offers[arm].Len() == 0 {
		return nil
	}
	return a.Offers[arm]
}

// A Batch is the step that asks are part of.
type Batch struct {
	Plain   int   // sequences that decode without asking
	Prompt  int   // rows of prompts
	Context int64 // positions that all sequences which decode have, together, those of asks too
}

// A Choice is the arm that drafts for a sequence, at most that deep. Arm -1 is
// none.
type Choice struct{ Arm, Depth int }

// A Proposal is a draft of the step to come.
type Proposal struct {
	Request     *Request
	Arm         int
	Temperature float32
	Draft       *spec.Draft
}

// A Step is what a step did and took.
type Step struct {
	Rows          int           // of the target, drafts included
	Prompt        int           // of them, that are of prompts
	Sequences     int           // that decoded, with drafts or without
	Context       int64         // positions that they have, together
	PromptContext int64         // positions that its rows of prompts read, together
	Tokens        int           // committed
	Took          time.Duration // without drafting
	Arm           int           // that made passes to draft; -1: none did
	Passes        int
	Drafting      time.Duration // of all passes
}

// A Controller decides for one engine. It is used by one goroutine at a time.
// What its methods return is valid until the next call.
type Controller struct {
	Config
	arms    []arm
	step    uint64 // steps so far
	now     prospect
	probing probing
	gains   gains

	budgets   [2]int // of the two steps before, for Async
	known     int    // of them
	admission spec.Admission

	// Working memory.
	choices   []Choice
	plans     [3]plan   // the best one so far, the best other that has passes, and one to try
	free      []offered // of every ask
	survivals []float64 // of all free drafts
	sums      sweep
	averages  [classes][maxDepth]float64
	average   [maxDepth]float64
	nodes     places
	estimate  []float64
}

// An arm is what is learned of a drafter.
type arm struct {
	Arm
	classes [classes]*survival
	passes  *Steps  // time of a pass by the number of sequences
	shifts  float64 // variance of requests around what is usual
	asked   int     // sequences that it was chosen for in this step
}

// A prospect is what is expected of the step to come.
type prospect struct {
	plain  int     // sequences, and so rows without drafts
	prompt int     // rows of prompts beside them
	rate   float64 // tokens per second of the plan
	row    float64 // seconds that a drafted row adds, by the plan
	passes int     // of the plan
	free   int     // rows of the plan without those that passes draft
	tokens float64 // committed in expectation, once admitted
}

// New returns a controller that knows nothing yet.
func New(cfg Config) *Controller {
	c := &Controller{Config: cfg}
	for _, a := range cfg.Arms {
		c.arms = append(c.arms, arm{Arm: a, passes: cfg.Steps.unmeasured(priorCost), shifts: anyShift})
	}
	return c
}

// priorCost is what a pass of a drafter is taken to cost, in plain steps, before
// one was measured.
const priorCost = 0.1

// Choose says which arm drafts for each ask, and how deep: what gives the most
// tokens per second of the batch. The arms that are not Free and are chosen are one
// and the same: a pass is for all.
func (c *Controller) Choose(asks []Ask, beside Batch) []Choice {
	c.step++
	c.now = prospect{plain: beside.Plain + len(asks), prompt: beside.Prompt}
	c.Steps.attend(c.now.plain, beside.Context)
	c.choices = c.choices[:0]
	for i := range c.arms {
		c.arms[i].asked = 0
	}
	for range asks {
		c.choices = append(c.choices, Choice{Arm: -1})
	}
	if c.Fixed {
		c.first(asks)
	} else {
		c.best(asks)
	}
	for _, x := range c.choices {
		if x.Arm >= 0 {
			c.arms[x.Arm].asked++
		}
	}
	return c.choices
}

// first chooses as Fixed says. One costly arm drafts for all that it may.
func (c *Controller) first(asks []Ask) {
	costly := -1
	for r := range asks {
		a := &asks[r]
		for i := range c.arms {
			switch {
			case a.Allowed>>i&1 == 0:
				continue
			case c.arms[i].Free:
				if a.offer(i) == nil {
					continue
				}
			case costly >= 0 && costly != i:
				continue
			default:
				costly = i
				c.now.passes = max(c.now.passes, c.arms[i].most(a))
			}
			c.choices[r] = Choice{i, c.arms[i].most(a)}
			break
		}
	}
}

// seconds is the time of a step of that many rows that decode, less that which
// its prompt rows take in any case. They are to be computed whatever is drafted,
// so that time is worth the tokens that decoding makes of it, prompts or not;
// but a drafted row costs what one more costs beside them.
func (c *Controller) seconds(rows int) float64 {
	s, plain, prompt := c.Steps, c.now.plain, c.now.prompt
	if prompt == 0 {
		return s.hoped(rows)
	}
	// What these rows take is not learned from such steps, and so nothing to be
	// hoped for.
	return s.hoped(plain) + max(s.seconds(rows+prompt)-s.seconds(plain+prompt), 0)
}

// most is the depth that an arm may draft for an ask.
func (a *arm) most(ask *Ask) int { return min(a.Depth, ask.Depth, ask.Nodes) }

// class is the class of a temperature: how often drafts are accepted depends on
// it.
func class(temperature float32) int {
	switch {
	case temperature == 0:
		return 0
	case temperature <= 0.5:
		return 1
	case temperature <= 1:
		return 2
	}
	return 3
}

const classes = 4

// of is what is known of an arm at a temperature.
func (a *arm) of(temperature float32) *survival {
	s := &a.classes[class(temperature)]
	if *s == nil {
		*s = newSurvival()
	}
	return *s
}
