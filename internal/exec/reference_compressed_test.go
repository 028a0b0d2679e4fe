package exec

import (
	"math"
	"slices"
)

// compressedAttention is the attention of a layer with the given ratio.
func (r *reference) compressedAttention(prefix string, ratio int, x [][]float64) [][]float64 {
	d := r.HeadDim
	var q, kv, low [][]float64
	for pos := range x {
		low = append(low, r.norm(prefix+"q_a_norm", r.linear(prefix+"q_a_proj", x[pos])))
		q = append(q, r.linear(prefix+"q_b_proj", low[pos]))
		for head := range slices.Chunk(q[pos], d) {
			if r.wrong != "no head norm" {
				copy(head, scaled(head, 1/math.Sqrt(dot64(head, head)/float64(d)+r.RMSNormEps)))
			}
			r.turnLast(head, pos, ratio)
		}
		k := r.linear(prefix+"kv_proj", x[pos])
		if r.wrong != "no kv norm" {
			k = r.norm(prefix+"kv_norm", k)
		}
		r.turnLast(k, pos, ratio)
		r.roundEntry(k)
		kv = append(kv, k)
	}
	var entries, index [][]float64
	if ratio > 0 {
		entries = r.compress(prefix+"compressor.", ratio, d, x)
		for _, e := range entries {
			if r.wrong != "entries not rounded" {
				r.roundEntry(e)
			}
		}
	}
	if ratio == 4 {
		index = r.compress(prefix+"compressor.indexer.", ratio, r.IndexDim, x)
		for _, k := range index {
			r.roundIndex(k)
		}
	}
	scale := 1 / math.Sqrt(float64(d))
	if r.wrong == "mscale" {
		m := 0.1*math.Log(r.Scaling.Factor) + 1
		scale *= m * m
	}
	sinks := r.tensors[prefix+"sinks"].Values
	out := make([][]float64, len(x))
	for pos := range x {
		read := slices.Clone(kv[max(0, pos+1-r.window()) : pos+1])
		for _, s := range r.visibleEntries(prefix+"compressor.indexer.", ratio, pos, len(entries), x[pos], low[pos], index) {
			read = append(read, entries[s])
		}
		joined := make([]float64, 0, r.Heads*d)
		for h := range r.Heads {
			var scores []float64
			for _, k := range read {
				scores = append(scores, scale*dot64(q[pos][h*d:(h+1)*d], k))
			}
			if r.wrong != "no sinks" {
				scores = append(scores, float64(sinks[h]))
			}
			p, value := logSoftmax64(scores), make([]float64, d)
			for i, k := range read {
				for j, v := range k {
					value[j] += math.Exp(p[i]) * v
				}
			}
			if r.wrong != "no inverse rope" {
				r.turnLast(value, -pos, ratio)
			}
			joined = append(joined, value...)
		}
		out[pos] = r.groupedOutput(prefix, joined)
	}
	return out
}

func (r *reference) window() int {
	switch r.wrong {
	case "window of one less":
		return r.Window - 1
	case "window of one more":
		return r.Window + 1
	}
	return r.Window
}

// visibleEntries lists the entries that a row reads.
func (r *reference) visibleEntries(indexer string, ratio, pos, all int, x, low []float64, index [][]float64) []int {
	if ratio == 0 {
		return nil
	}
	n := (pos + 1) / ratio
	switch r.wrong {
	case "entries one too early":
		n = min(n+1, all)
	case "entries one too late":
		n = max(n-1, 0)
	case "entries complete before the row":
		n = pos / ratio
	case "all entries":
		n = all
	}
	visible := make([]int, n)
	for i := range visible {
		visible[i] = i
	}
	top := r.IndexTopK
	switch r.wrong {
	case "one entry less":
		top--
	case "one entry more":
		top++
	}
	if index == nil || n <= top || r.wrong == "no indexer" {
		return visible
	}
	q, w := r.linear(indexer+"q_b_proj", low), r.linear(indexer+"weights_proj", x)
	scores := make([]float64, n)
	for h := range r.IndexHeads {
		head := q[h*r.IndexDim : (h+1)*r.IndexDim]
		if r.wrong != "no rope of index queries" {
			r.turnLast(head, pos, ratio)
		}
		r.roundIndex(head)
		for s := range scores {
			score := dot64(head, index[s])
			if r.wrong != "no relu" {
				score = math.Max(score, 0)
			}
			if r.wrong == "no index weights" {
				w[h] = 1
			}
			scores[s] += score * w[h]
		}
	}
	if r.wrong == "least entries" {
		scores = scaled(scores, -1)
	}
	return best(scores, top)
}

// compress makes an entry of every ratio positions of x that are complete.
func (r *reference) compress(prefix string, ratio, d int, x [][]float64) [][]float64 {
	overlap := ratio == 4
	bias := r.tensors[prefix+"position_bias"]
	width := bias.Shape[1]
	var v, g [][]float64
	for pos := range x {
		v, g = append(v, r.linear(prefix+"kv_proj", x[pos])), append(g, r.linear(prefix+"gate_proj", x[pos]))
		if r.wrong == "no position bias" {
			continue
		}
		for i := range g[pos] {
			g[pos][i] += float64(bias.Values[pos%ratio*width+i])
		}
	}
	var out [][]float64
	for s := range len(x) / ratio {
		entry := make([]float64, d)
		for c := range entry {
			var values, gates []float64
			add := func(pos, channel int) {
				values, gates = append(values, v[pos][channel]), append(gates, g[pos][channel])
			}
			before, own := 0, 0 // where halves begin
			if overlap {
				own = d
			}
			if r.wrong == "halves swapped" {
				before, own = own, before
			}
			for i := range ratio {
				switch {
				case !overlap || r.wrong == "no overlap":
				case s > 0:
					add((s-1)*ratio+i, before+c)
				case r.wrong == "zeros before the first window":
					values, gates = append(values, 0), append(gates, 0)
				}
			}
			for i := range ratio {
				add(s*ratio+i, own+c)
			}
			for i, p := range logSoftmax64(gates) {
				if r.wrong == "plain mean" {
					p = -math.Log(float64(len(gates)))
				}
				entry[c] += math.Exp(p) * values[i]
			}
		}
		if r.wrong != "no entry norm" {
			entry = r.norm(prefix+"kv_norm", entry)
		}
		pos := s * ratio
		if r.wrong == "entries at their last position" {
			pos += ratio - 1
		}
		if r.wrong != "no rope of entries" {
			r.turnLast(entry, pos, ratio)
		}
		out = append(out, entry)
	}
	return out
}

// turnLast rotates the last values of h as the layer does.
func (r *reference) turnLast(h []float64, pos, ratio int) {
	n := r.RopeDim
	h = h[len(h)-n:]
	theta, yarn := r.Theta, false
	if ratio > 0 {
		theta, yarn = r.CompressTheta, r.Scaling.Factor > 1
	}
	factor := 1.0
	switch r.wrong {
	case "main rope":
		theta, yarn = r.Theta, false
	case "main base":
		if ratio > 0 {
			theta = r.Theta
		}
	case "no yarn":
		yarn = false
	case "yarn everywhere":
		theta, yarn = r.CompressTheta, true
	case "factor on cosines":
		if yarn {
			factor = 0.1*math.Log(r.Scaling.Factor) + 1
		}
	}
	corrected := func(rotations float64) float64 {
		return float64(n) * math.Log(r.Scaling.Original/(rotations*2*math.Pi)) / (2 * math.Log(theta))
	}
	for i := range n / 2 {
		f := math.Pow(theta, -2*float64(i)/float64(n))
		if yarn {
			low, high := math.Max(math.Floor(corrected(32)), 0), math.Min(math.Ceil(corrected(1)), float64(n-1))
			if low == high {
				high += 0.001
			}
			ramp := math.Min(math.Max((float64(i)-low)/(high-low), 0), 1)
			f = f/r.Scaling.Factor*ramp + f*(1-ramp)
		}
		a, b := 2*i, 2*i+1
		if r.wrong == "halves" {
			a, b = i, i+n/2
		}
		sin, cos := math.Sincos(float64(pos) * f)
		h[a], h[b] = factor*(h[a]*cos-h[b]*sin), factor*(h[b]*cos+h[a]*sin)
	}
}

// groupedOutput projects heads group by group, then all results together.
func (r *reference) groupedOutput(prefix string, heads []float64) []float64 {
	in, d := len(heads)/r.OutGroups, r.HeadDim
	if r.wrong == "heads dealt to groups" {
		dealt := make([]float64, 0, len(heads))
		for g := range r.OutGroups {
			for h := g; h < r.Heads; h += r.OutGroups {
				dealt = append(dealt, heads[h*d:(h+1)*d]...)
			}
		}
		heads = dealt
	}
	rank := r.tensors[prefix+"o_a_proj.weight"].Shape[0] / r.OutGroups
	low := make([]float64, r.OutGroups*rank)
	for i := range low {
		g := i / rank
		if r.wrong == "groups reversed" {
			g = r.OutGroups - 1 - g
		}
		low[i] = dot64(r.row(prefix+"o_a_proj.weight", i), heads[g*in:(g+1)*in])
	}
	return r.linear(prefix+"o_b_proj", low)
}
