package tensor

import (
	"slices"
	"testing"
)

func TestSlice(t *testing.T) {
	data := make([]byte, 6*4)
	for i := range data {
		data[i] = byte(0x30 + i) // e4m3 from 0.5 on
	}
	m := &Matrix{Name: "m", DType: F8E4M3, Rows: 6, Cols: 4, Data: data, Scales: &Scales{
		DType: F8E8M0, BlockRows: 2, BlockCols: 3, Data: []byte{127, 128, 129, 130, 131, 132}, // 1, 2, 4, …
	}}
	s, err := m.Slice(2, 5)
	if err != nil {
		t.Fatal(err)
	}
	got, want := make([]float32, 4), make([]float32, 4)
	for r := range 3 {
		s.Row(got, r)
		if m.Row(want, r+2); !slices.Equal(got, want) {
			t.Errorf("row %d is %v, want %v", r, got, want)
		}
	}
	if _, err := m.Slice(1, 3); err == nil {
		t.Error("a slice within a block of scales: no error")
	}

	if m.Sliceable(2, 4) != m {
		t.Error("rows that begin where scales do: another matrix")
	}
	floats := m.Sliceable(4, 3)
	if s, err = floats.Slice(3, 6); err != nil {
		t.Fatal(err)
	}
	for r := range 3 {
		s.Row(got, r)
		if m.Row(want, r+3); !slices.Equal(got, want) {
			t.Errorf("decoded row %d is %v, want %v", r, got, want)
		}
	}
}
