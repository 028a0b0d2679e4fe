package neon

// LoadPart loads the first n words of v, n < 4, and keeps the others. It
// touches no memory beyond them.
func LoadPart(v V, base, n R) {
	part(base, n, func(p R) {
		Asm("VLD1.P 8(%v), %v.D[0]", p, v)
	}, func(p R, lane int) { LD1(v, lane, p) })
}

// StorePart stores the first n words of v, n < 4.
func StorePart(v V, base, n R) {
	part(base, n, func(p R) {
		Asm("VST1.P %v.D[0], 8(%v)", v, p)
	}, func(p R, lane int) { ST1(v, lane, p) })
}

// part moves the first two words with two, which moves its address on, and the
// first or third with one.
func part(base, n R, two func(p R), one func(p R, lane int)) {
	Scope(func() {
		p, first, done := NewR(), NewLabel("one"), NewLabel("done")
		Asm("MOVD %v, %v", base, p)
		Asm("TBZ $1, %v, %s", n, first)
		two(p)
		Asm("TBZ $0, %v, %s", n, done)
		one(p, 2)
		Asm("B %s", done)
		Label(first)
		Asm("TBZ $0, %v, %s", n, done)
		one(p, 0)
		Label(done)
	})
}

// Elements loops over n values from each source: body gets unroll vectors of
// every source, then one at a time, then what is left with zeros behind it, and
// leaves the result in those of the first source, which are stored to dst. It
// overwrites n and the pointers; dst may be a source. Every value goes through
// the same instructions wherever it lies, so that it does not depend on its
// neighbours.
func Elements(unroll int, n, dst R, sources []R, body func(v [][]V)) {
	for _, vectors := range []int{unroll, 1} {
		Loop(n, 4*vectors, func() {
			// A source that is dst moves on when the results are stored.
			v := make([][]V, len(sources))
			for k, from := range sources {
				v[k] = NewVs(vectors)
				for i, v := range v[k] {
					if from == dst {
						LDR(v, from, 16*i)
					} else {
						LDRPost(v, from, 16)
					}
				}
			}
			body(v)
			for _, v := range v[0] {
				STRPost(v, dst, 16)
			}
		})
	}
	end := NewLabel("end")
	Asm("CBZ %v, %s", n, end)
	Scope(func() {
		v := make([][]V, len(sources))
		for k, from := range sources {
			v[k] = NewVs(1)
			ZERO(v[k][0])
			LoadPart(v[k][0], from, n)
		}
		body(v)
		StorePart(v[0][0], dst, n)
	})
	Label(end)
}

// Loop runs body while n is at least step, from which it takes step each time.
func Loop(n R, step int, body func()) {
	top, below := NewLabel("loop"), NewLabel("below")
	Label(top)
	Asm("CMP $%d, %v", step, n)
	Asm("BLO %s", below)
	Scope(body)
	Add(n, -step)
	Asm("B %s", top)
	Label(below)
}
