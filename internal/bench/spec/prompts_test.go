package spec

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadSet(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(`{"task_id": "HumanEval/0", "prompt": "def f():\n", "test": "…"}` + "\n"))
	z.Close()
	for _, c := range []struct {
		name, data string
		want       []Prompt
	}{
		{"GSM8K", `{"question": "How many?", "answer": "4"}` + "\n\n" + `{"question": "And now?", "answer": "5"}`, []Prompt{{"How many?", true}, {"And now?", true}}},
		{"MT-Bench", `{"question_id": 81, "category": "writing", "turns": ["Write.", "Again."]}`, []Prompt{{"Write.", true}}},
		{"a single turn", `{"turns": ["Write."]}`, []Prompt{{"Write.", true}}},
		{"HumanEval, compressed", packed.String(), []Prompt{{"def f():\n", false}}},
	} {
		set, err := ReadSet("a", []byte(c.data))
		if diff := cmp.Diff(Set{"a", c.want}, set); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", c.name, err, diff)
		}
	}
}

func TestReadSetErrors(t *testing.T) {
	for data, want := range map[string]string{
		"":           "no prompts",
		"{}":         "line 1: expected a JSON object with turns, a question or a prompt",
		`["a"]`:      "line 1: json: ",
		"plain":      "line 1: invalid character",
		"\x1f\x8bzz": "unexpected EOF",
		`{"question": "a"}` + "\n" + `{"prompt": "b"}`: "line 2: no question, which the lines before have",
	} {
		if _, err := ReadSet("a", []byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", data, err, want)
		}
	}
}

// A question is asked as text where there is no template for it.
func TestPlain(t *testing.T) {
	q, p := Prompt{"How many?", true}, Prompt{"def f():", false}
	if got := q.Plain(); got != "Question: How many?\nAnswer:" {
		t.Errorf("a question is asked as %q", got)
	}
	if got := p.Plain(); got != "def f():" {
		t.Errorf("a prompt to continue has become %q", got)
	}
}

// The prompt holds a file and begins it anew with one name changed, so that the
// continuation repeats the rest.
func TestCodeEdit(t *testing.T) {
	const file = "def total(items):\n    count, subitems = 0, 0\n    # all items, no item_s\n    for item in items:\n        count += item\n\n\n    return count\n"
	set, err := Make(CodeEdit, "sum.py", file)
	if err != nil || len(set.Prompts) != 1 {
		t.Fatalf("%v, %d prompts, want 1", err, len(set.Prompts))
	}
	const want = "The file sum.py:\n\n```\n" + file + "```\n\nThe same file, with items renamed to items2:\n\n```\ndef total(items2):\n    count, subitems = 0, 0\n"
	// items and count come three times each; items is the first.
	if diff := cmp.Diff(Prompt{want, false}, set.Prompts[0]); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}
	long, err := Make(CodeEdit, "sum.py", strings.Repeat(file, 15)) // 120 lines
	if err != nil || len(long.Prompts) != 2 {
		t.Errorf("%v: a file of 120 lines gives %d prompts, want 2", err, len(long.Prompts))
	}
}

// The prompt is a text and the first sentence of its summary.
func TestSummarise(t *testing.T) {
	set, err := Make(Summarise, "a", "One goes.\nIt went. It is gone.\n\nTwo stays. It is here.\n")
	want := []Prompt{{"One goes.\nIt went. It is gone.\n\nTwo stays. It is here.\n\nThe text above in short, in its own words, one sentence of each paragraph:\n\n- One goes.\n-", false}}
	if diff := cmp.Diff(Set{Summarise, want}, set); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestMakeErrors(t *testing.T) {
	for _, c := range []struct{ set, text, want string }{
		{CodeEdit, "a\nb\nc\nd\n", "too short for a prompt"},
		{CodeEdit, "name name\n", "too short for a prompt"},
		{Summarise, "One paragraph. It is alone.", "too short for a prompt"},
		{Summarise, "\xff\n\nb", "UTF-8"},
		{"other", "a", `set "other": expected code-edit or summarise`},
	} {
		if _, err := Make(c.set, "file", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %q: error %v, want %q", c.set, c.text, err, c.want)
		}
	}
}

// The sets that are shipped have a prompt of each text, all different, and none so
// long that a context of 2048 tokens would not do.
func TestShipped(t *testing.T) {
	for _, name := range Made() {
		set, err := Shipped(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Prompts) != 8 {
			t.Errorf("%s has %d prompts, want 8", name, len(set.Prompts))
		}
		seen := map[string]bool{}
		for _, p := range set.Prompts {
			if seen[p.Text] || p.Question || len(p.Text) < 1000 || len(p.Text) > 4000 {
				t.Errorf("%s: a prompt of %d bytes, question %v, twice %v: %.60q", name, len(p.Text), p.Question, seen[p.Text], p.Text)
			}
			seen[p.Text] = true
		}
	}
}
