package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestOracle compares with Hugging Face tokenizers on small tokenizers; testdata/oracle.py made the
// file.
func TestOracle(t *testing.T) {
	data, err := os.ReadFile("testdata/oracle.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name      string
		Tokenizer json.RawMessage
		Cases     []struct {
			Text             string
			IDs, Special     []int32
			Decoded, Skipped string
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		t.Run(x.Name, func(t *testing.T) {
			tok, err := FromJSON(x.Tokenizer, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range x.Cases {
				ids, err := tok.Encode(c.Text, Options{})
				if err != nil || !slices.Equal(ids, c.IDs) {
					t.Errorf("%q:\n got %q, %v\nwant %q", c.Text, names(tok, ids), err, names(tok, c.IDs))
				}
				special, err := tok.Encode(c.Text, Options{Special: true})
				if err != nil || !slices.Equal(special, c.Special) {
					t.Errorf("%q with special tokens:\n got %q, %v\nwant %q", c.Text, names(tok, special), err, names(tok, c.Special))
				}
				if got := tok.Decode(c.IDs, false); got != c.Decoded {
					t.Errorf("%v decodes to %q, want %q", c.IDs, got, c.Decoded)
				}
				if got := tok.Decode(c.IDs, true); got != c.Skipped {
					t.Errorf("%v without special tokens decodes to %q, want %q", c.IDs, got, c.Skipped)
				}
			}
		})
	}
}
