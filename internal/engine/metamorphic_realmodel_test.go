//go:build realmodel

package engine

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

// 200 requests to a published model.
func TestMetamorphicRealModel(t *testing.T) {
	var sum Stats
	subject{
		path: realModel(t), base: Options{MaxModelLen: 160},
		configurations: 10, requests: 20, prompt: 70, output: 8,
	}.test(t, &sum)
	enough(t, sum)
}

// realModel is the path of a published model, fetched as tools/realmodel fetches
// it.
func realModel(t *testing.T) string {
	t.Helper()
	const model = "smollm2:135m"
	home := cmp.Or(os.Getenv("FORETOKEN_REALMODEL_HOME"), t.TempDir())
	if !filepath.IsAbs(home) {
		home = filepath.Join("../../tools/realmodel", home) // relative to that suite
	}
	t.Setenv("FORETOKEN_HOME", filepath.Join(home, "smollm2-135m", "foretoken"))
	t.Setenv("HF_HOME", filepath.Join(home, "smollm2-135m", "huggingface"))
	store, err := pull.Default()
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.Pull(context.Background(), model, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m.Path
}
