//go:build shared

package tokenizer

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// metadata is a Metadata in memory.
type metadata map[string]any

func (m metadata) String(key string) (string, bool)    { v, ok := m[key].(string); return v, ok }
func (m metadata) Int(key string) (int64, bool)        { v, ok := m[key].(int64); return v, ok }
func (m metadata) Bool(key string) (bool, bool)        { v, ok := m[key].(bool); return v, ok }
func (m metadata) Strings(key string) ([]string, bool) { v, ok := m[key].([]string); return v, ok }
func (m metadata) Floats(key string) ([]float32, bool) { v, ok := m[key].([]float32); return v, ok }
func (m metadata) Ints(key string) ([]int32, bool)     { v, ok := m[key].([]int32); return v, ok }

// readGGUFMetadata reads the key-value part of a sound GGUF file.
func readGGUFMetadata(data []byte) metadata {
	u32 := func() uint32 { v := binary.LittleEndian.Uint32(data); data = data[4:]; return v }
	u64 := func() uint64 { v := binary.LittleEndian.Uint64(data); data = data[8:]; return v }
	text := func() string { n := u64(); s := string(data[:n]); data = data[n:]; return s }
	var value func(kind uint32) any
	value = func(kind uint32) any {
		switch kind {
		case 0, 1:
			v := int64(data[0])
			data = data[1:]
			return v
		case 7:
			v := data[0] != 0
			data = data[1:]
			return v
		case 2, 3:
			v := int64(binary.LittleEndian.Uint16(data))
			data = data[2:]
			return v
		case 4, 5:
			return int64(int32(u32()))
		case 6:
			return math.Float32frombits(u32())
		case 8:
			return text()
		case 10, 11:
			return int64(u64())
		case 12:
			return math.Float64frombits(u64())
		case 9:
			elem, n := u32(), u64()
			switch elem {
			case 8:
				list := make([]string, n)
				for i := range list {
					list[i] = text()
				}
				return list
			case 6:
				list := make([]float32, n)
				for i := range list {
					list[i] = math.Float32frombits(u32())
				}
				return list
			}
			list := make([]int32, n)
			for i := range list {
				list[i] = int32(value(elem).(int64))
			}
			return list
		}
		panic(kind)
	}
	m := metadata{}
	data = data[16:] // magic, version, number of tensors
	for range u64() {
		key := text()
		m[key] = value(u32())
	}
	return m
}

// TestGGUFVocabularies encodes the texts that come with llama.cpp's vocabulary files, whose ids were made with Hugging Face tokenizers.
func TestGGUFVocabularies(t *testing.T) {
	for _, name := range []string{"deepseek-llm", "gpt-2", "llama-bpe", "llama-spm", "qwen2"} {
		t.Run(name, func(t *testing.T) {
			file := "ggml-vocab-" + name + ".gguf"
			tok, err := FromGGUF(readGGUFMetadata(sharedData(t, "tokenizer", file)))
			if err != nil {
				t.Fatal(err)
			}
			texts := strings.Split(string(sharedData(t, "tokenizer", file+".inp")), "\n__ggml_vocab_test__\n")
			lines := strings.Split(string(sharedData(t, "tokenizer", file+".out")), "\n")
			if len(texts) != 47 || len(lines) < len(texts) {
				t.Fatalf("%d texts, %d lines of ids", len(texts), len(lines))
			}
			for i, text := range texts {
				var want []int32
				for f := range strings.FieldsSeq(lines[i]) {
					id, err := strconv.Atoi(f)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, int32(id))
				}
				got, err := tok.Encode(text, Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("text %d, %q:\n got %v\nwant %v", i, text, got, want)
				}
				if dec := tok.Decode(got, false); dec != text && dec != nfc.normalize(text) {
					t.Errorf("text %d, %q: decoded to %q", i, text, dec)
				}
			}
		})
	}
}

func BenchmarkFromGGUF(b *testing.B) {
	for _, name := range []string{"llama-bpe", "llama-spm", "qwen2"} {
		m := readGGUFMetadata(sharedData(b, "tokenizer", "ggml-vocab-"+name+".gguf"))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := FromGGUF(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
