package pull

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An Unfinished is what a pull that failed or was cut has left: the next one goes on from there.
type Unfinished struct {
	Name     string // what Pull and Remove take; of the Hugging Face cache the repository
	Size     int64  // bytes that arrived
	Modified time.Time
}

// unfinishedName is the file that keeps the name of a model until there is a manifest: that of its folder is a hash.
const unfinishedName = "unfinished"

// ofModel reports the files that are a model, or on their way to it.
func ofModel(file string) bool { return file != unfinishedName }

// tidy leaves of a pull that failed what the next one can go on from, or nothing.
func tidy(folder string) error {
	if files, _, _ := usage(folder, ofModel); files == 0 {
		return os.RemoveAll(folder)
	}
	prune(folder)
	return nil
}

// prune removes folders that hold nothing but folders. What cannot be removed does no harm.
func prune(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			prune(filepath.Join(folder, e.Name()))
		}
	}
	_ = os.Remove(folder) // fails unless it is empty
}

// usage counts the files below a folder, and their bytes. Links count as themselves.
func usage(folder string, count func(file string) bool) (files int, bytes int64, newest time.Time) {
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what cannot be read is not there
		}
		if info, err := d.Info(); err == nil && count(d.Name()) {
			files++
			if info.Mode().IsRegular() {
				bytes += info.Size()
			}
			if info.ModTime().After(newest) {
				newest = info.ModTime()
			}
		}
		return nil
	})
	return files, bytes, newest
}

func anyFile(string) bool { return true }

// isPartial reports files on their way, and those that say which version of the file they are of.
func isPartial(file string) bool {
	return strings.HasSuffix(file, ".partial") || strings.HasSuffix(file, ".partial.tag")
}

// Unfinished returns what pulls that did not end left on this machine, by name.
func (s *Store) Unfinished() []Unfinished {
	var list []Unfinished
	add := func(name, folder string, count func(string) bool) {
		if files, size, at := usage(folder, count); files > 0 {
			list = append(list, Unfinished{Name: name, Size: size, Modified: at})
		}
	}
	folders, _ := os.ReadDir(s.models()) // an error is one of List, too
	for _, e := range folders {
		folder := filepath.Join(s.models(), e.Name())
		if _, err := os.Lstat(filepath.Join(folder, manifestName)); err == nil {
			continue
		}
		if name, ok := nameOf(folder); ok {
			add(name, folder, ofModel)
		}
	}
	repos, _ := os.ReadDir(s.HubCache)
	for _, e := range repos {
		if repo, ok := repoOf(e.Name()); ok {
			add(Ref{Kind: KindHub, Repo: repo}.String(), filepath.Join(s.HubCache, e.Name(), "blobs"), isPartial)
		}
	}
	slices.SortFunc(list, func(a, b Unfinished) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// nameOf returns the name of the unfinished model in a folder of the store. It is checked as in a manifest.
func nameOf(folder string) (string, bool) {
	f, err := os.Open(filepath.Join(folder, unfinishedName))
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := readAll(f, maxRef)
	if err != nil {
		return "", false
	}
	ref, err := ParseRef(string(b))
	return ref.String(), err == nil && folderName(ref.String()) == filepath.Base(folder)
}
