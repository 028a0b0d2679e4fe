package main

import "testing"

func TestByteCount(t *testing.T) {
	for text, want := range map[string]byteCount{
		"24GB": 24e9, "24G": 24e9, "24 gb": 24e9, "1.5GiB": 3 << 29, "512mib": 512 << 20, "1kB": 1000, "2TiB": 2 << 40, ".5KiB": 512,
	} {
		var got byteCount
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "24", "GB", "-1GB", "1e3GB", "24B", "24XB", "24GBs", "1..5GB", "0GB", "0.0001kB", "99999999999TB", "iB", "24i", "∞GB"} {
		var got byteCount
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}
