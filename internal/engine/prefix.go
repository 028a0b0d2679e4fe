package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/foretoken/foretoken/internal/kernel"
)

// restorePrefixes fills the prefix cache with what the last run has saved.
// What was saved and is of no use is told to the log: the model serves all the
// same.
func (e *Engine) restorePrefixes(o Options) error {
	if o.PrefixCacheDir == "" {
		return nil
	}
	if e.tree == nil {
		return fmt.Errorf("prefix-cache-dir: prefixes are not shared: %w", e.unshared)
	}
	digest, err := e.digest(o)
	if err != nil {
		return fmt.Errorf("prefix-cache-dir: %w", err)
	}
	e.saveTo = func() error {
		if err := e.tree.Save(o.PrefixCacheDir, digest); err != nil {
			return err
		}
		if err := prunePrefixes(o.PrefixCacheDir, time.Now()); err != nil {
			e.log.Warn("old prefix caches are not removed", "error", err)
		}
		return nil
	}
	tokens, err := e.tree.Restore(o.PrefixCacheDir, digest)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		e.log.Warn("the saved prefix cache is of no use", "error", err)
	default:
		e.log.Info("prefix cache restored", "tokens", tokens)
	}
	return nil
}

const (
	keptPrefixes  = 8         // files in a directory
	unfinishedFor = time.Hour // without a write: who wrote it is gone
)

// savedPrefixes are the names of the files that kvcache.Tree.Save makes: a hash,
// and while a file is written some digits behind it.
var savedPrefixes = regexp.MustCompile(`^[0-9a-f]{24}\.prefixes(\.[0-9]+)?$`)

// prunePrefixes removes what was saved for other models and options, but for
// the newest files, and what was left unfinished. Every model, and every way to
// run it, has a file of up to the cache's size: without an end to them they fill
// the disk. Files of other names are not ours.
func prunePrefixes(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var saved []fs.FileInfo
	var failed []error
	remove := func(f fs.FileInfo) {
		if err := os.Remove(filepath.Join(dir, f.Name())); !errors.Is(err, fs.ErrNotExist) { // another engine may have done it
			failed = append(failed, err)
		}
	}
	for _, entry := range entries {
		name := savedPrefixes.FindStringSubmatch(entry.Name())
		info, err := entry.Info()
		switch {
		case name == nil || err != nil || !info.Mode().IsRegular():
		case name[1] == "":
			saved = append(saved, info)
		case now.Sub(info.ModTime()) > unfinishedFor:
			remove(info)
		}
	}
	slices.SortFunc(saved, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, f := range saved[min(len(saved), keptPrefixes):] {
		remove(f)
	}
	return errors.Join(failed...)
}

// digest stands for all that cached bits depend on and the cache does not know:
// the model's files and layers, how weights are rounded, the form of attention, the
// kernels' tier.
func (e *Engine) digest(o Options) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, kernel.ThisCPU(), o.DType, o.Quantize, o.MLA, o.RoundCache, e.layers())
	for _, path := range e.checkpoint.Files() {
		if err := fingerprint(h, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

const (
	wholeFile = 64 << 20 // up to here a file is hashed whole
	samples   = 256      // pieces of a longer one
	piece     = 64 << 10
)

// fingerprint hashes the size, the time and the contents of a file; of a large
// one, pieces spread over it: reading hundreds of gigabytes would take longer
// than the cache saves. Files of equal size and time that differ only between
// the pieces were made to be mistaken.
func fingerprint(h io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	fmt.Fprintln(h, filepath.Base(path), size)
	if size <= wholeFile {
		_, err := io.Copy(h, f)
		return err
	}
	fmt.Fprintln(h, info.ModTime().UnixNano())
	for i := range int64(samples) {
		from := (size - piece) * i / (samples - 1)
		if _, err := io.Copy(h, io.NewSectionReader(f, from, piece)); err != nil {
			return err
		}
	}
	return nil
}
