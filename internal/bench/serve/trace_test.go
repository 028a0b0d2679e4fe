package serve

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const azure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" +
	"2023-11-16 18:17:03.9799600,4808,10\r\n" +
	"2023-11-16 18:17:04.0319600,3180,8\r\n" +
	"2023-11-16 19:00:00.0000000,3,1000"

const mooncake = `{"timestamp": 500, "input_length": 513, "output_length": 7, "hash_ids": [0, 3]}

{"timestamp": 500.5, "input_length": 1, "output_length": 1, "hash_ids": [9], "more": {}}
{"timestamp": 27, "input_length": 1024, "output_length": 2000, "hash_ids": [0, 182789]}
`

func TestReadTrace(t *testing.T) {
	for _, c := range []struct {
		name, file string
		want       Trace
	}{
		{"Azure", azure, Trace{Requests: []Request{
			{Input: 4808, Output: 10},
			{At: 52 * step, Input: 3180, Output: 8},
			{At: 42*time.Minute + 56*time.Second + 20*step + 40*time.Microsecond, Input: 3, Output: 1000},
		}}},
		{
			"Azure 2024, other columns, later first", "\ufeffid,GeneratedTokens,ContextTokens,TIMESTAMP\n1,2,3,2024-05-12 00:00:01+00:00\n2,4,5,2024-05-12 00:00:00.25+00:00\n",
			Trace{Requests: []Request{{Input: 5, Output: 4}, {At: 750 * step, Input: 3, Output: 2}}},
		},
		{"Mooncake", mooncake, Trace{BlockSize: 512, Requests: []Request{
			{Input: 1024, Output: 2000, Blocks: []int64{0, 182789}},
			{At: 473 * step, Input: 513, Output: 7, Blocks: []int64{0, 3}},
			{At: 473*step + 500*time.Microsecond, Input: 1, Output: 1, Blocks: []int64{9}},
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadTrace(strings.NewReader(c.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadTraceErrors(t *testing.T) {
	line := func(s string) string { return mooncake + s }
	row := func(s string) string { return azure + "\n" + s }
	for _, c := range []struct{ name, file, want string }{
		{"empty", "", "no column TIMESTAMP: expected a CSV file with TIMESTAMP, ContextTokens, GeneratedTokens, or a line of JSON"},
		{"binary", "\x00\x01\x02", "no column TIMESTAMP"},
		{"no requests", azure[:strings.Index(azure, "\r\n")+2], "a trace without requests"},
		{"column", "TIMESTAMP,ContextTokens\n", "no column GeneratedTokens"},
		{"too few", row("2023-11-16 19:00:00,1"), "record on line 5: wrong number of fields"},
		{"time", row("yesterday,1,1"), `line 5: TIMESTAMP "yesterday": expected a time such as`},
		{"another age", row("1023-11-16 19:00:00,1,1"), "line 5: TIMESTAMP 1023-11-16 19:00:00 +0000 UTC: more than a century from the first"},
		{"no number", row("2023-11-16 19:00:00,1,many"), `line 5: expected numbers of tokens: strconv.Atoi: parsing "many"`},
		{"no tokens", row("2023-11-16 19:00:00,1,0"), "line 5: 0 tokens: expected 1 to 1048576"},
		{"many tokens", row("2023-11-16 19:00:00,1048577,1"), "line 5: 1048577 tokens"},
		{"quote", row(`2023-11-16 19:00:00,"1,1`), "quote"},
		{"JSON", line("{"), "line 5: unexpected end of JSON input"},
		{"type", line(`{"timestamp": "now"}`), "line 5: json: cannot unmarshal string"},
		{"missing", line(`{"timestamp": 1, "input_length": 5}`), "line 5: expected timestamp, input_length, output_length and hash_ids"},
		{"negative time", line(`{"timestamp": -1, "input_length": 5, "output_length": 5, "hash_ids": [1]}`), "line 5: timestamp -1: expected milliseconds"},
		{"late", line(`{"timestamp": 1e13, "input_length": 5, "output_length": 5, "hash_ids": [1]}`), "line 5: timestamp 1e+13"},
		{"negative length", line(`{"timestamp": 1, "input_length": -5, "output_length": 5, "hash_ids": []}`), "line 5: -5 tokens"},
		{"few blocks", line(`{"timestamp": 1, "input_length": 513, "output_length": 5, "hash_ids": [1]}`), "line 5: 1 hash_ids: expected 2, one for each 512 of 513 tokens"},
		{"many blocks", line(`{"timestamp": 1, "input_length": 5, "output_length": 5, "hash_ids": [1, 2]}`), "line 5: 2 hash_ids: expected 1"},
		{"deep", line(strings.Repeat(`{"a":`, 1e5)), "line 5: "},
		{"long line", line(strings.Repeat(" ", 1<<20) + "{}"), "line 5: bufio.Scanner: token too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadTrace(strings.NewReader(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, error %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestScaledTrace(t *testing.T) {
	trace := &Trace{BlockSize: 512, Requests: []Request{
		{At: time.Second, Input: 1024, Output: 50, Blocks: []int64{1, 2}},
		{At: 2 * time.Second, Input: 5, Output: 1, Blocks: []int64{1}},
	}}
	got, err := trace.scaled(0.5, 0.1)
	want := &Trace{BlockSize: 51, Requests: []Request{
		{At: 500 * step, Input: 102, Output: 5, Blocks: []int64{1, 2}},
		{At: time.Second, Input: 1, Output: 1, Blocks: []int64{1}},
	}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
	if trace.Requests[0].Input != 1024 {
		t.Error("the trace itself was changed")
	}
	trace.Requests[1].Input = maxTokens
	if _, err := trace.scaled(1, 2); err == nil || err.Error() != "request 1, scaled: 2097152 tokens: expected 1 to 1048576" {
		t.Errorf("error %v", err)
	}
}

// Traces are files: whatever is in them is read or refused.
func FuzzReadTrace(f *testing.F) {
	f.Add(azure)
	f.Add(mooncake)
	f.Fuzz(func(t *testing.T, file string) {
		trace, err := ReadTrace(strings.NewReader(file))
		if err != nil {
			return
		}
		var before time.Duration
		for i, r := range trace.Requests {
			if r.At < before || r.Input < 1 || r.Output < 1 || i == 0 && r.At != 0 {
				t.Fatalf("request %d: %+v", i, r)
			}
			before = r.At
		}
	})
}
