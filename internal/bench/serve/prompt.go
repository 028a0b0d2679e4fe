package serve

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
)

// prompts makes the prompts of a load. A prompt is a list of draws, one for
// each token, that token ids or words are made of; requests that share a prefix
// or a block draw the same there.
type prompts struct {
	*Options
	block int // tokens of a block of a trace
}

// draws calls yield with a number for each token of the prompt of request i:
// those of the prefix that all prompts have, of the blocks, and what is left.
func (p *prompts) draws(purpose uint64, i int, r Request, yield func(uint32)) {
	some := func(random *rand.Rand, n int) {
		for range n {
			yield(random.Uint32())
		}
	}
	some(p.source(drawPrefix, 0), p.Prefix)
	left := r.Input
	for _, block := range r.Blocks {
		n := min(p.block, left)
		some(p.source(drawBlock, uint64(block)), n)
		left -= n
	}
	some(p.source(purpose, uint64(i)), left)
}

// appendIDs appends the prompt of request i as a JSON array of token ids.
func (p *prompts) appendIDs(b []byte, purpose uint64, i int, r Request) []byte {
	count := uint64(p.TokenIDs.Max - p.TokenIDs.Min + 1)
	b = append(b, '[')
	p.draws(purpose, i, r, func(v uint32) {
		// As math/rand does it, but always with one draw: the high bits of a product.
		b = strconv.AppendUint(b, uint64(p.TokenIDs.Min)+uint64(v)*count>>32, 10)
		b = append(b, ',')
	})
	b[len(b)-1] = ']' // a prompt has a token at least
	return b
}

// given reports whether prompts for a purpose are not drawn.
func (p *prompts) given(purpose uint64) bool { return len(p.Prompts) > 0 && purpose == drawPrompt }

// appendText appends the prompt as a JSON string: as it was given, or of as many
// words as it is to have tokens.
func (p *prompts) appendText(b []byte, purpose uint64, i int, r Request) []byte {
	if p.given(purpose) {
		text, _ := json.Marshal(p.Prompts[i%len(p.Prompts)]) // which no string refuses
		return append(b, text...)
	}
	b = append(b, '"')
	p.draws(purpose, i, r, func(v uint32) {
		b = append(b, words[int(v%uint32(len(words)))]...)
		b = append(b, ' ')
	})
	b[len(b)-1] = '"'
	return b
}

// words are short and frequent, so that in most vocabularies each, with the
// space before it, is a token.
var words = strings.Fields(`
the of and to in is that it was for on are as with his they at be this from have or by one had not but what all
were when we there can an your which their said if do will each about how up out them then she many some so these
would other into has more her two like him see time could no make than first been its who now people my made over
did down only way find use may water long little very after words called just where most know get through back much
before go good new write our used me man too any day same right look think also around another came come work three
word must because does part even place well such here take why things help put years different away again off went
old number great tell men say small every found still between name should home big give air line set own under read
last never us left end along while might next sound below saw something thought both few those always looked show
large often together asked house world going want school important until form food keep children feet land side
without boy once animals life enough took sometimes four head above kind began almost live page got earth need far
hand high year mother light parts country father let night following picture being study second eyes soon times
story boys since white days ever paper hard near sentence better best across during today others however sure means
knew try told young miles sun ways thing whole hear example heard several change answer room sea against top turned
learn point city play toward five using himself usually money seen`)
