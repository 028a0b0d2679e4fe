package main

import "testing"

func TestByteCount(t *testing.T) {
	for text, want := range map[string]int64{
		"24GB": 24e9, "24G": 24e9, "24 gb": 24e9, "1.5GiB": 3 << 29, "512mib": 512 << 20, "1kB": 1000, "2TiB": 2 << 40, ".5KiB": 512, "24B": 24, "24 b": 24,
	} {
		var got byteCount
		if err := got.UnmarshalText([]byte(text)); err != nil || got.bytes != want {
			t.Errorf("%s: %d, %v; want %d", text, got.bytes, err, want)
		}
	}
	for _, text := range []string{"", "24", "GB", "-1GB", "1e3GB", "0B", "24XB", "24GBs", "1..5GB", "0GB", "0.0001kB", "99999999999TB", "iB", "24i", "∞GB"} {
		var got byteCount
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %d, want an error", text, got.bytes)
		}
	}
}

func TestByteCountAtLeast(t *testing.T) {
	for _, tc := range []struct {
		text  string
		bytes int64
		want  string
	}{
		{"1B", 81920, "81920B"},
		{"1kB", 81920, "82kB"},
		{"1 KiB", 81920, "80KiB"},
		{"1GB", 3_211_000_001, "3.22GB"},
		{"0.5gib", 1 << 30, "1gib"},
		{"0.001GB", 8_192_000, "0.0082GB"},
	} {
		var n byteCount
		if err := n.UnmarshalText([]byte(tc.text)); err != nil {
			t.Fatal(err)
		}
		got := n.atLeast(tc.bytes)
		if got != tc.want {
			t.Errorf("%s, at least %d bytes: %s, want %s", tc.text, tc.bytes, got, tc.want)
		}
		if err := n.UnmarshalText([]byte(got)); err != nil || n.bytes < tc.bytes {
			t.Errorf("%s is %d bytes, %v; want %d or more", got, n.bytes, err, tc.bytes)
		}
	}
}
