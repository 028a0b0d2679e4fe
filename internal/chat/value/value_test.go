package value

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What Python's json.dumps(json.loads(text), ensure_ascii=False) prints.
func TestDecodeEncode(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{` { "b" : 1 , "a" : [ 1.0, true, null, "x" ] } `, `{"b": 1, "a": [1.0, true, null, "x"]}`},
		{`{"a": 1, "b": 2, "a": 3}`, `{"a": 3, "b": 2}`},
		{`[]`, `[]`},
		{`{}`, `{}`},
		{`[[], {}]`, `[[], {}]`},
		{`"x"`, `"x"`},
		// numbers
		{`[0, -0, -5, 9223372036854775807, 9223372036854775808, -9223372036854775809]`, `[0, 0, -5, 9223372036854775807, 9223372036854775808, -9223372036854775809]`},
		{`[1.0, -0.0, 2.50, 1e2, 1E+2, 123456789012345678]`, `[1.0, -0.0, 2.5, 100.0, 100.0, 123456789012345678]`},
		{`[1e15, 1e16, 12345678901234567.0, 0.0001, 0.00001, -2e-7, 1e22, 5e-324, 1e-400]`, `[1000000000000000.0, 1e+16, 1.2345678901234568e+16, 0.0001, 1e-05, -2e-07, 1e+22, 5e-324, 0.0]`},
		// strings
		{`"\"\\\/\b\f\n\r\t"`, `"\"\\/\b\f\n\r\t"`},
		{`"\u0000\u001f\u007f\u00e9\u2028\ud83d\ude00"`, `"\u0000\u001f` + "\x7fé\u2028😀" + `"`},
		{`"<b>&'é漢"`, `"<b>&'é漢"`},
	} {
		v, err := Decode([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got, err := Encode(v); got != c.want || err != nil {
			t.Errorf("%s\n got %s, %v\nwant %s", c.text, got, err, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "json: offset 0: unexpected end",
		"nul":                           `json: offset 0: expected a value, found "n"`,
		"NaN":                           `json: offset 0: expected a value, found "N"`,
		"[1, Infinity]":                 `json: offset 4: expected a value, found "I"`,
		"1 2":                           "json: offset 2: data after the value",
		"[1,]":                          `json: offset 3: expected a value, found "]"`,
		`{"a" 1}`:                       "json: offset 5: expected ':'",
		`{a: 1}`:                        "json: offset 1: expected a key",
		`{"a": 1`:                       "json: offset 7: expected ',' or '}'",
		`[1 2]`:                         "json: offset 3: expected ',' or ']'",
		"01":                            "json: offset 2: malformed number",
		"-":                             "json: offset 1: malformed number",
		"1.":                            "json: offset 2: malformed number",
		"1e":                            "json: offset 2: malformed number",
		"1e400":                         "json: offset 5: number beyond float64",
		`"a`:                            "json: offset 2: unterminated string",
		`"\`:                            "json: offset 2: unterminated string",
		"\"a\nb\"":                      "json: offset 2: control character in a string",
		`"\q"`:                          `json: offset 3: unknown escape \q`,
		`"\u12"`:                        `json: offset 3: malformed \u escape`,
		`"\ud83d"`:                      "json: offset 7: half a surrogate pair",
		`"\ude00\ud83d"`:                "json: offset 13: half a surrogate pair",
		"\"\xff\"":                      "json: offset 1: invalid UTF-8",
		"\"\xed\xa0\x80\"":              "json: offset 1: invalid UTF-8",
		strings.Repeat("9", 5000):       "json: offset 5000: integer of 5000 digits, the most is 4300",
		strings.Repeat("[", 100000):     "json: offset 129: nested deeper than 128",
		strings.Repeat(`{"a":`, 100000): "json: offset 645: nested deeper than 128",
	} {
		v, err := Decode([]byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%.40s: got %v, %v, want %s", text, v, err, want)
		}
	}
}

// The forms of json.dumps.
func TestDumps(t *testing.T) {
	v, err := Decode([]byte(`{"b": [1, {}, []], "a": {"é": "😀"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dumps Dumps
		want  string
	}{
		{Dumps{}, `{"b": [1, {}, []], "a": {"é": "😀"}}`},
		{Dumps{SortKeys: true, ASCII: true}, `{"a": {"\u00e9": "\ud83d\ude00"}, "b": [1, {}, []]}`},
		{Dumps{Separators: &[2]string{",", ":"}}, `{"b":[1,{},[]],"a":{"é":"😀"}}`},
		{Dumps{Multiline: true, Indent: "  "}, "{\n  \"b\": [\n    1,\n    {},\n    []\n  ],\n  \"a\": {\n    \"é\": \"😀\"\n  }\n}"},
		{Dumps{Multiline: true}, "{\n\"b\": [\n1,\n{},\n[]\n],\n\"a\": {\n\"é\": \"😀\"\n}\n}"},
	} {
		if got, err := c.dumps.Append(nil, v); string(got) != c.want || err != nil {
			t.Errorf("%+v\n got %s, %v\nwant %s", c.dumps, got, err, c.want)
		}
	}
	if _, err := (Dumps{Limit: 10}).Append(nil, v); err != ErrLimit {
		t.Errorf("limit: got %v", err)
	}
	if _, err := (Dumps{Multiline: true, Indent: strings.Repeat(" ", 1<<20), Limit: 1 << 21}).Append(nil, v); err != ErrLimit {
		t.Errorf("limit of indents: got %v", err)
	}
	if _, err := Encode(struct{}{}); err == nil || err.Error() != "Object of type struct {} is not JSON serializable" {
		t.Errorf("no JSON: got %v", err)
	}
	loop := NewList(nil)
	loop.Items[0] = loop
	if _, err := Encode(loop); err == nil {
		t.Error("a list in itself: no error")
	}
}

func TestObjectKeepsOrder(t *testing.T) {
	o := NewObject("z", 1, "a", 2)
	for k := range strings.SplitSeq("m b y q c d e f g h", " ") {
		o.Set(k, k)
	}
	o.Set("z", 3)
	if got, _ := Encode(o); got != `{"z": 3, "a": 2, "m": "m", "b": "b", "y": "y", "q": "q", "c": "c", "d": "d", "e": "e", "f": "f", "g": "g", "h": "h"}` {
		t.Error(got)
	}
	c := o.Clone()
	c.Set("a", nil)
	if v, _ := o.Get("a"); v != int64(2) {
		t.Error("changing a clone changed the original")
	}
	if _, ok := o.Get("nope"); ok || o.Len() != 12 || (*Object)(nil).Len() != 0 {
		t.Error("lengths")
	}
}

// Keys that are equal in Python are one key.
func TestHash(t *testing.T) {
	tuple := func(items ...Value) *Tuple { return &Tuple{Items: items} }
	huge, _ := new(big.Int).SetString("100000000000000000000000", 10)
	for _, c := range []struct {
		a, b Value
		same bool
	}{
		{int64(1), 1.0, true},
		{int64(1), true, true},
		{int64(0), false, true},
		{1.5, 1.5, true},
		{int64(1), "1", false},
		{nil, false, false},
		{1e23, huge, false},
		{math.Pow(2, 80), Int(new(big.Int).Lsh(big.NewInt(1), 80)), true},
		{tuple("a", int64(1)), tuple("a", 1.0), true},
		{tuple("a", "b"), tuple("ab", ""), false},
		{tuple("1"), tuple(int64(1)), false},
		{tuple(tuple("a"), "b"), tuple(tuple("a"), "b"), true},
		{tuple(), nil, false},
	} {
		a, ok1 := Hash(c.a)
		b, ok2 := Hash(c.b)
		if !ok1 || !ok2 || (a == b) != c.same {
			t.Errorf("%v, %v: %v %v", c.a, c.b, a, b)
		}
	}
	for _, v := range []Value{NewList(), new(Object), tuple(NewList())} {
		if _, ok := Hash(v); ok {
			t.Errorf("%T is hashable", v)
		}
	}
}

// json draws any JSON value.
func json(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		n := 6
		if depth == 0 {
			n = 4
		}
		switch rapid.IntRange(0, n).Draw(t, "kind") {
		case 0:
			return nil
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2:
			i := big.NewInt(rapid.Int64().Draw(t, "int"))
			return Int(i.Mul(i, big.NewInt(rapid.Int64Range(1, 1000).Draw(t, "scale"))))
		case 3:
			return rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "float")
		case 4:
			return rapid.String().Draw(t, "string")
		case 5:
			return NewList(rapid.SliceOfN(json(depth-1), 0, 4).Draw(t, "items")...)
		}
		o := new(Object)
		for i := range rapid.IntRange(0, 12).Draw(t, "keys") {
			o.Set(rapid.String().Draw(t, "key"), i)
		}
		return o
	})
}

func TestEveryValueReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := json(3).Draw(t, "value")
		for _, d := range []Dumps{{}, {ASCII: true}, {Multiline: true, Indent: " "}} {
			text, err := d.Append(nil, v)
			if err != nil {
				t.Fatal(err)
			}
			back, err := Decode(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			again, err := d.Append(nil, back)
			if err != nil || string(again) != string(text) {
				t.Fatalf("%s became %s, %v", text, again, err)
			}
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"a": [1, 2.5e-3, "\u00e9\n", null, true], "a": {}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Decode(data)
		if err != nil {
			return
		}
		text, err := Encode(v)
		if err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if _, err := Decode([]byte(text)); err != nil {
			t.Fatalf("%q became %q: %v", data, text, err)
		}
	})
}

// What nobody can have meant, and what takes too much memory, is an error where
// texts of strangers are read.
func TestDecodeUnique(t *testing.T) {
	for _, tc := range []struct {
		text  string
		limit int    // of values
		want  string // "": no error
	}{
		{`{"a":1,"b":2,"c":{"d":4,"e":5,"f":6}}`, 9, ""},
		{`{"a":1,"b":2,"c":3,"d":4}`, 9, `json: offset 24: an object has more than 3 keys`},
		{`[{"a":1,"b":2,"c":3,"a":4}]`, 9, `the key "a" comes twice`},
		{`[12345,-12345,1234567890,12345.0]`, 9, ""},
		{`-12345678901`, 9, "integer of 11 digits, the most is 10"},
		{`{"a":1,"b":{"a":2}}`, 4, ""},
		{`{"a":1,"b":{"a":2}}`, 3, "too many values"},
		{`[[],[],[]]`, 4, ""},
		{`[[],[],[]]`, 3, "json: offset 7: too many values"},
		{`{"a":1,"a":1}`, 9, `json: offset 12: the key "a" comes twice`},
		{`[{"a":{"\u0061":1,"a":2}}]`, 9, `the key "a" comes twice`},
	} {
		_, err := DecodeUnique([]byte(tc.text), Limits{Values: tc.limit, Keys: 3, Digits: 10})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s, %d values: %v, want %q", tc.text, tc.limit, err, tc.want)
		}
	}
}
