package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/foretoken/foretoken/internal/checkpoint/pull"
)

// pullModel fetches a model and shows how far it has come.
func pullModel(ctx context.Context, model string) (pull.Model, error) {
	store, err := pull.Default()
	if err != nil {
		return pull.Model{}, err
	}
	p := progress{bytes: true}
	defer p.end()
	return store.Pull(ctx, model, p.event)
}

// progress shows what a long task does on stderr: a bar on a terminal; else
// downloads, which may take minutes, have a line for each part.
type progress struct {
	bytes bool // are counted: shown, with their rate, beside the percentage

	part    string
	before  int64 // of the part, done before it began here
	began   time.Time
	drawn   time.Time
	shown   int        // characters of the bar on the screen
	skipped pull.Event // the source that did not work, until another one is tried
}

// event is a pull.Progress.
func (p *progress) event(e pull.Event) {
	if s := p.skipped; s.Source != "" && e.Source != s.Source {
		// All of why matters if no other works, and is then part of the error.
		why, _, _ := strings.Cut(oneLine(s.Err), ": ")
		note("%s did not work (%s); trying %s", s.Source, why, e.Source)
		p.skipped = pull.Event{}
	}
	file := e.File
	if e.Count > 1 {
		file = fmt.Sprintf("%d/%d %s", e.Index, e.Count, e.File)
	}
	switch e.Stage {
	case pull.StageWait:
		p.end()
		note("another process is pulling %s: waiting for it", e.Source)
	case pull.StageKeep:
		p.end()
		note("%s: %s; the copy on this machine is used as it is", e.Source, oneLine(e.Err))
	case pull.StageDownload:
		p.step("pulling "+file, e.Done, e.Total)
	case pull.StageUnpack:
		p.step("unpacking "+file, e.Done, e.Total)
	case pull.StageSkip:
		p.end()
		p.skipped = e
	}
}

// step shows that done of total (0: unknown) of a part are through.
func (p *progress) step(part string, done, total int64) {
	terminal := term.IsTerminal(int(os.Stderr.Fd()))
	if part != p.part {
		p.end()
		p.part, p.before, p.began = part, done, time.Now()
		if !terminal && p.bytes {
			if total > 0 {
				part += " (" + pull.ByteSize(total) + ")"
			}
			note("%s", part)
		}
	}
	const pause = 100 * time.Millisecond
	if !terminal || time.Since(p.drawn) < pause {
		return
	}
	p.drawn = time.Now()
	width, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	// In the last column some terminals begin a new line.
	line := p.line(width-1, done, total, p.drawn.Sub(p.began))
	length := len([]rune(line))
	fmt.Fprint(os.Stderr, "\r", line, strings.Repeat(" ", max(0, min(p.shown, width-1)-length)))
	p.shown = length
}

// end leaves stderr at the start of an empty line.
func (p *progress) end() {
	if p.shown > 0 {
		fmt.Fprint(os.Stderr, "\r", strings.Repeat(" ", p.shown), "\r")
	}
	p.part, p.shown, p.drawn = "", 0, time.Time{}
}

// line is the bar of a part after a time, in at most width characters. Its
// numbers come first, then the name, then the bar itself.
func (p *progress) line(width int, done, total int64, took time.Duration) string {
	const (
		widest, narrowest = 40, 10      // bar
		settled           = time.Second // before it a rate means little
		shortest          = 12          // name
	)
	var numbers string
	if total > 0 {
		numbers = fmt.Sprintf(" %3d%%", 100*min(done, total)/total)
	}
	if p.bytes {
		numbers += fmt.Sprintf(" %8s", pull.ByteSize(done)) // padded, lest the bar dances
		if total > 0 {
			numbers += " of " + pull.ByteSize(total)
		}
		// Of a part that is resumed only what comes now counts.
		if rate := float64(done-p.before) / max(took, 1).Seconds(); took >= settled && rate >= 1 {
			if speed := fmt.Sprintf(", %8s/s", pull.ByteSize(int64(rate))); len(numbers)+len(speed)+shortest <= width {
				numbers += speed
			}
		}
	}
	name := shorten(p.part, width-len(numbers))
	room := min(widest, width-len([]rune(name))-len(numbers)-len(" []"))
	if total == 0 || room < narrowest {
		return shorten(name+numbers, width)
	}
	filled := int(int64(room) * min(done, total) / total)
	return name + " [" + strings.Repeat("=", filled) + strings.Repeat(" ", room-filled) + "]" + numbers
}

// shorten cuts the middle out of a text that is longer than width.
func shorten(text string, width int) string {
	r := []rune(text)
	if len(r) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	keep := width - 1
	return string(r[:(keep+1)/2]) + "…" + string(r[len(r)-keep/2:])
}
