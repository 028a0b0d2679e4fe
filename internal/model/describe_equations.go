package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/foretoken/foretoken/internal/model/moe"
)

// equations are those of the model, in the names of docs/architectures.md: its
// residual stream, attention, feed-forward part and head.
func (c *Config) equations() (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	gemma := strings.HasPrefix(c.Architecture, "gemma3")
	switch {
	case c.V4 != nil:
		add("X[k] = post[k]·f(RMSNorm(Σ pre[j]·X[j])) + Σ comb[j,k]·X[j]   f: Attn, then FFN")
		add("pre = σ(m₁)+ε, post = 2·σ(m₂), comb = Sinkhorn(m₃)   m = scale·(W·X/rms(X)) + base")
	case gemma:
		add("x = √%d·embed(token)", c.Hidden)
		add("x += RMSNorm(Attn(RMSNorm(x)))")
		add("x += RMSNorm(FFN(RMSNorm(x)))")
	default:
		add("x += Attn(RMSNorm(x))")
		add("x += FFN(RMSNorm(x))")
	}
	switch {
	case c.V4 != nil:
		c.compressedEquations(add)
	case c.MLA != nil:
		c.latentEquations(add)
	default:
		qNorm, bias := gemma || strings.HasPrefix(c.Architecture, "qwen3"), c.Architecture == "qwen2"
		project := func(w string) string {
			y := fmt.Sprintf("W_%s·x", w)
			if bias {
				y += " + b_" + w
			}
			if w != "v" && qNorm {
				y = "RMSNorm(" + y + ")"
			}
			if w != "v" {
				y = "rope(" + y + ")"
			}
			return y
		}
		add("q = %s, k = %s, v = %s   per head", project("q"), project("k"), project("v"))
		if c.NSA == nil {
			add("Attn(x) = W_o·[softmax(%s)·v]", c.scores())
			break
		}
		add("g_c = σ(W_g,c·x)   per head, c: compressed blocks, selected blocks, window")
		add("Attn(x) = W_o·[Σ_c g_c·softmax(%s)·v]   over the keys and values of each c", c.scores())
	}
	c.feedForwardEquations(add, gemma)
	if c.V4 != nil {
		add("logits = W_head·RMSNorm(Σ pre[j]·X[j])")
	} else {
		add("logits = W_head·RMSNorm(x)")
	}
	return lines
}

// scores is q·k with its scale.
func (c *Config) scores() string {
	if n := 1 / (c.QueryScale * c.QueryScale); math.Abs(n-math.Round(n)) < 1e-6*n {
		return fmt.Sprintf("q·k/√%.0f", n)
	}
	return fmt.Sprintf("%.4g·q·k", c.QueryScale)
}

func (c *Config) latentEquations(add func(string, ...any)) {
	q := "W_q·x"
	if c.MLA.QueryRank > 0 {
		q = "W_qb·r, r = RMSNorm(W_qa·x)"
	}
	add("[q_n; q_r] = %s   per head", q)
	add("[c; k_r] = W_kva·x   kept: RMSNorm(c), rope(k_r)")
	add("q·k = (K_hᵀ·q_n)·c + rope(q_r)·k_r   = [q_n; rope(q_r)]·[K_h·c; k_r]")
	add("Attn(x) = W_o·[V_h·Σ softmax(%s)·c]", c.scores())
	if c.Indexer != nil {
		add("I(t,s) = Σ_h w_h(t)·relu(q_h(t)·k(s))   t attends to the %d best s", c.Indexer.TopK)
	}
}

func (c *Config) compressedEquations(add func(string, ...any)) {
	add("q = rope(rms(W_qb·RMSNorm(W_qa·x)))   per head      kv = rope(RMSNorm(W_kv·x))")
	add("C = rope(RMSNorm(Σ_t softmax_t(W_g·x_t + bias) ∘ W_c·x_t))   of 4 or 128 positions t")
	add("o = rope⁻¹(softmax(%s, sink)·[kv; C])   over the window and entries", c.scores())
	if c.describeAttention().Index != nil {
		add("I(t,s) = Σ_h w_h(t)·relu(q_h(t)·k(s))   of entries of 4, t reads the %d best s", c.V4.IndexTopK)
	}
	add("Attn(x) = W_ob·[W_oa,g·o_g]   g: groups of heads")
}

func (c *Config) feedForwardEquations(add func(string, ...any), gemma bool) {
	act := "silu(W_gate·x)"
	if gemma {
		act = "gelu(W_gate·x)"
	}
	m := c.MoE
	if m == nil {
		add("FFN(x) = W_down·(%s ∘ W_up·x)", act)
		return
	}
	shared, limit := "", ""
	if m.Shared > 0 {
		shared = " + E_shared(x)"
	}
	if m.Limit > 0 {
		limit = fmt.Sprintf("   gates ≤ %g, |up| ≤ %g", m.Limit, m.Limit)
	}
	add("FFN(x) = Σ w_e·E_e(x)%s   over %d of %d experts", shared, m.Active, m.Experts)
	add("E(x) = W_down·(%s ∘ W_up·x)%s", act, limit)
	choice := "s"
	if m.Bias || c.V4 != nil {
		choice = "s + bias"
	}
	weights := "s_e"
	if m.Normalize {
		weights = "s_e/Σ s"
	}
	if m.Scale != 1 {
		weights = fmt.Sprintf("%g·%s", m.Scale, weights)
	}
	score := map[moe.Scoring]string{moe.Softmax: "softmax", moe.Sigmoid: "σ", moe.SqrtSoftplus: "√softplus"}[m.Scoring]
	add("s = %s(W_r·x)   chosen by %s   w_e = %s", score, choice, weights)
}
