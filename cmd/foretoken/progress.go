package main

import (
	"context"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

// pullModel fetches a model and shows how far it has come.
func pullModel(ctx context.Context, model string) (pull.Model, error) {
	store, err := pull.Default()
	if err != nil {
		return pull.Model{}, err
	}
	p := progress{unit: unitBytes}
	defer p.end()
	return store.Pull(ctx, model, p.event)
}

// progress shows what a long task does on stderr: a bar on a terminal; else
// downloads, which may take minutes, have a line for each part.
type progress struct {
	unit    string // of what is counted
	part    string
	skipped string // the source that did not work, until another one is tried
	bar     *progressbar.ProgressBar
}

const unitBytes = "bytes"

// event is a pull.Progress.
func (p *progress) event(e pull.Event) {
	if p.skipped != "" && e.Source != p.skipped {
		note("%s did not work; trying %s", p.skipped, e.Source)
		p.skipped = ""
	}
	switch e.Stage {
	case pull.StageWait:
		p.end()
		note("another process is pulling %s: waiting for it", e.Source)
	case pull.StageDownload:
		p.step("pulling "+e.File, e.Done, e.Total)
	case pull.StageUnpack:
		p.step("unpacking "+e.File, e.Done, e.Total)
	case pull.StageSkip:
		p.end()
		p.skipped = e.Source // why matters if no other works, and is then part of the error
	}
}

// step shows that done of total (0: unknown) of a part are through.
func (p *progress) step(part string, done, total int64) {
	if part != p.part {
		p.end()
		p.part = part
		p.begin(total)
	}
	if p.bar != nil {
		_ = p.bar.Set64(done)
	}
}

func (p *progress) begin(total int64) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		switch {
		case p.unit != unitBytes:
		case total > 0:
			note("%s (%s)", p.part, byteSize(total))
		default:
			note("%s", p.part)
		}
		return
	}
	if total == 0 {
		total = -1
	}
	p.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription(p.part),
		progressbar.OptionShowBytes(p.unit == unitBytes),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(p.unit),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionFullWidth(),
		progressbar.OptionClearOnFinish(),
	)
}

// end leaves stderr at the start of a line.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	p.part, p.bar = "", nil
}
