package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foretoken/foretoken/internal/checkpoint"
	"github.com/foretoken/foretoken/internal/kvcache"
	"github.com/foretoken/foretoken/internal/model"
	"github.com/foretoken/foretoken/internal/model/nn"
	"github.com/foretoken/foretoken/internal/spec"
	"github.com/foretoken/foretoken/internal/spec/adapt"
	"github.com/foretoken/foretoken/internal/spec/draft"
	"github.com/foretoken/foretoken/internal/tensor"
)

// The methods of speculation, as vLLM calls them.
const (
	ngram      = "ngram"
	suffix     = "suffix"
	draftModel = "draft_model"
	mtp        = "mtp"
	auto       = "auto"
	simulated  = "simulated"
)

// SpeculationMethods are the values of Speculation.Method.
var SpeculationMethods = []string{ngram, suffix, draftModel, mtp, auto}

// A drafting is the model that drafts, while the engine is opened.
type drafting struct {
	model      model.Model
	checkpoint *checkpoint.Checkpoint // its files; nil: the target's
	own        bool                   // it has layers of its own in the cache
	vocab      *draft.Vocab           // between its tokens and the target's; nil: they are the same
}

// loadDraft loads the model that drafts, if a method needs one.
func (e *Engine) loadDraft(ctx context.Context, o Options, packing nn.Packing) error {
	name := o.Speculation.Model
	if name == "" {
		return nil
	}
	packer := *packing.Packer
	packer.Arena = &e.draftArena
	packing = nn.Packing{Packer: &packer, Progress: func(_, _ int64) error { return ctx.Err() }}
	what, self := strings.CutPrefix(name, "self:")
	layers, some := strings.CutPrefix(what, "layers=")
	var err error
	switch {
	case some && self:
		e.drafting.model, err = subset(e.model, layers)
	case self:
		if packer.Quantize, err = selfType(what); err == nil {
			packer.Again = true
			e.drafting.model, err = model.Load(e.checkpoint, model.Options{Packing: packing, MLAExpanded: o.MLA == "expanded", RoundCache: o.RoundCache, ExpertMemory: o.ExpertMemory})
		}
	default:
		err = e.loadDraftFrom(name, packing)
	}
	if err != nil {
		return fmt.Errorf("draft model %s: %w", name, err)
	}
	return nil
}

// subset is the model with some of its layers only, listed as 0-5,8.
func subset(m model.Model, list string) (model.Model, error) {
	var layers []int
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || first > last || last >= m.Config().Layers {
			return nil, fmt.Errorf("layers %.40q: expected numbers and ranges in ascending order, such as 0-5,8, below %d", list, m.Config().Layers)
		}
		for i := first; i <= last; i++ {
			layers = append(layers, i)
		}
	}
	return model.Subset(m, layers)
}

// selfType is the type that a model's own weights are rounded to.
func selfType(name string) (tensor.DType, error) {
	switch name {
	case "q4", "q4_0":
		return tensor.Q4_0, nil
	case "q4_1":
		return tensor.Q4_1, nil
	case "q8", "q8_0":
		return tensor.Q8_0, nil
	}
	return tensor.Invalid, fmt.Errorf("the model itself as %.40q: expected q4, q4_1, q8 or layers=0-5,8", name)
}

// loadDraftFrom loads another model, whose tokens have to be the target's.
func (e *Engine) loadDraftFrom(path string, packing nn.Packing) (err error) {
	d := &e.drafting
	if d.checkpoint, err = checkpoint.Open(path); err != nil {
		return err
	}
	d.own = true
	return d.checkpoint.Guard(func() error {
		config, err := model.Check(d.checkpoint)
		if err != nil {
			return err
		}
		tokens, err := OpenTokenizer(d.checkpoint)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return errors.New("it has no tokenizer, expected the model's own: nothing says what its tokens are")
		case err != nil:
			return err
		case e.tokenizer == nil:
			return fmt.Errorf("nothing says which of its tokens are the model's: %w", e.noVocab)
		}
		if d.vocab, err = draft.MapVocab(e.tokenizer, tokens, e.Config().Vocab, config.Vocab); err != nil {
			return err
		}
		if d.model, err = model.Load(d.checkpoint, model.Options{Packing: packing}); err != nil {
			return err
		}
		for _, l := range d.model.Cache() {
			if err := l.Shareable(); err != nil {
				return fmt.Errorf("it would keep requests from sharing prefixes: %w", err)
			}
		}
		return nil
	})
}

// layers is what the cache keeps: the layers of the model and, behind them, those
// of the model that drafts.
func (e *Engine) layers() []kvcache.LayerSpec {
	layers := e.model.Cache()
	if e.drafting.own {
		layers = slices.Concat(layers, e.drafting.model.Cache())
	}
	return layers
}

// openSpeculator makes the drafters and measures what they are decided by.
func (e *Engine) openSpeculator(o Speculation) error {
	if o.Method == "" {
		return nil
	}
	sp := &speculator{Speculation: o}
	e.speculator = sp
	for _, method := range e.methods(o) {
		if err := sp.add(e, method); err != nil {
			return fmt.Errorf("speculative method %s: %w", method, err)
		}
	}
	steps, err := e.profile()
	if err != nil {
		return fmt.Errorf("profile of steps: %w", err)
	}
	c := adapt.Config{Fixed: o.Fixed, Async: o.Async, Steps: steps}
	for _, a := range sp.arms {
		c.Arms = append(c.Arms, a.Arm)
	}
	sp.ctl, e.board.arms = adapt.New(c), make([]SpeculationStats, len(sp.arms))
	return nil
}

// methods are those that a method stands for.
func (e *Engine) methods(o Speculation) []string {
	if o.Method != auto {
		return []string{o.Method}
	}
	list := []string{suffix}
	if o.Model != "" {
		list = append(list, draftModel)
	}
	if len(e.model.MTP()) > 0 {
		list = append(list, mtp)
	}
	return list
}

// add makes the drafter of a method.
func (sp *speculator) add(e *Engine, method string) error {
	a := &arm{Arm: adapt.Arm{Name: method, Depth: sp.Tokens}}
	depth := func(n int) {
		if a.Depth == 0 {
			a.Depth = n
		}
	}
	var err error
	switch method {
	case ngram:
		depth(10)
		a.Free, a.drafter = true, draft.NewLookup(sp.LookupMin, sp.LookupMax)
	case suffix:
		depth(16)
		a.Free, a.drafter = true, draft.NewSuffix(draft.SuffixOptions{})
	case draftModel:
		depth(5)
		if sp.Tree == staticTree {
			a.Depth, sp.Nodes = spec.Eagle1.Depth(), spec.Eagle1.Len()
		}
		a.drafter, err = e.modelDrafter(sp.Speculation)
		a.watches = e.drafting.own
	case mtp:
		depth(max(3, len(e.model.MTP())))
		a.drafter, err = draft.NewMTP(e.model, e.pool, e.cache)
		a.watches, a.whole = true, true
	case simulated:
		depth(len(sp.Simulate))
		a.Block = true
		step := func(sequences int) time.Duration { return sp.ctl.Steps.Some(sequences) }
		sp.simulated, err = draft.NewSimulated(draft.SimulatedOptions{Acceptance: sp.Simulate, Cost: sp.SimulateCost, Step: step})
		a.drafter = sp.simulated
	}
	if err != nil {
		return err
	}
	if sp.Nodes == 0 {
		sp.Nodes = min(sp.TopK*a.Depth, mostDrafted)
	}
	a.Depth = min(a.Depth, mostDrafted)
	sp.arms = append(sp.arms, a)
	return nil
}

// modelDrafter makes the drafter of the model that was loaded to draft.
func (e *Engine) modelDrafter(o Speculation) (draft.Drafter, error) {
	d := &e.drafting
	m := draft.ModelOptions{Model: d.model, Pool: e.pool, Cache: e.cache, Vocab: d.vocab, Shared: !d.own}
	if d.own {
		m.First = len(e.model.Cache())
	}
	switch o.Tree {
	case dynamicTree:
		m.TopK = o.TopK
	case staticTree:
		m.Template = spec.Eagle1
	}
	if o.Tree != "" {
		if err := e.Config().Trees(); err != nil {
			return nil, err
		}
	}
	return draft.NewModel(m)
}

// mostNodes is the most tokens of a draft.
func (sp *speculator) mostNodes() int {
	most := 0
	for _, a := range sp.arms {
		most = max(most, a.Depth)
	}
	if sp.Tree != "" {
		most = max(most, sp.Nodes)
	}
	return most
}

// admit says which arms may draft for a new request, and how much.
func (sp *speculator) admit(r *Request) draftState {
	state := draftState{most: math.MaxInt}
	if sp == nil || r.PromptOnly {
		return state
	}
	wish := RequestSpeculation{}
	if r.Speculation != nil {
		wish = *r.Speculation
	}
	if wish.Off {
		return state
	}
	if wish.Tokens > 0 {
		state.most = wish.Tokens
	}
	for i, a := range sp.arms {
		if wish.Method == "" || wish.Method == auto || wish.Method == a.Name {
			state.allowed |= 1 << i
		}
	}
	return state
}

// names lists the methods of the engine.
func (sp *speculator) names() string {
	if sp == nil {
		return "nothing"
	}
	var names []string
	for _, a := range sp.arms {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

// has reports whether a request can ask for a method; "": for any, or none; auto:
// for any.
func (sp *speculator) has(method string) bool {
	return method == "" || sp != nil && (method == auto || slices.ContainsFunc(sp.arms, func(a *arm) bool { return a.Name == method }))
}
