package pull

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// removeHub deletes a repository from the cache, or only the revision or file that ref names.
func (s *Store) removeHub(ref Ref) (bytes int64, err error) {
	hub, err := os.OpenRoot(s.HubCache)
	if err != nil {
		return 0, fmt.Errorf("not in the cache: %w", err)
	}
	defer hub.Close()
	folder := cacheFolder(ref.Repo)
	if _, err := hub.Lstat(folder); err != nil {
		return 0, fmt.Errorf("not in the cache: %w", err)
	}
	path := filepath.Join(s.HubCache, folder)
	files, before, _ := usage(path, anyFile)
	more := false
	if ref.File != "" || ref.Revision != "" {
		if more, err = s.removeFiles(ref); errors.Is(err, fs.ErrNotExist) {
			err = removePartials(path, err)
		}
		if err != nil {
			return 0, err
		}
	}
	if !more {
		if err := errors.Join(hub.RemoveAll(folder), hub.RemoveAll(filepath.Join(".locks", folder))); err != nil {
			return 0, err
		}
	}
	left, after, _ := usage(path, anyFile)
	if files == left { // empty folders were all there was
		return 0, fmt.Errorf("not in the cache: %w", fs.ErrNotExist)
	}
	return before - after, nil
}

// removePartials deletes the unfinished downloads of a repository, which do not tell what files they are of. Without
// any it returns the error that no file was found.
func removePartials(folder string, none error) error {
	files, err := filepath.Glob(filepath.Join(folder, "blobs", "*.partial*"))
	if err != nil || len(files) == 0 {
		return none
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return nil
}

// removeFiles deletes a file with its splits, or all files of a revision, and the content no other snapshot shows.
// more says that the repository's folder still holds something.
func (s *Store) removeFiles(ref Ref) (more bool, err error) {
	commit, err := s.commitOf(ref.Repo, ref.Revision)
	if err != nil {
		return true, fmt.Errorf("not in the cache: %w", err)
	}
	cache, err := os.OpenRoot(filepath.Join(s.HubCache, cacheFolder(ref.Repo)))
	if err != nil {
		return true, err
	}
	defer cache.Close()
	var files []string
	if ref.File != "" {
		files, err = splits(ref.File)
	} else {
		walkFiles(s.snapshot(ref.Repo, commit), func(file string) { files = append(files, file) })
	}
	if err != nil {
		return true, err
	}
	var blobs []string
	found := false
	for _, file := range files {
		place := filepath.Join("snapshots", commit, filepath.FromSlash(file))
		target, _ := cache.Readlink(place)
		if err := cache.Remove(place); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return true, err
		}
		found = true
		if blob := filepath.Base(target); isHex(blob, 64) || isHex(blob, 40) {
			blobs = append(blobs, blob)
		}
	}
	if !found {
		return true, fmt.Errorf("not in the cache: %w", fs.ErrNotExist)
	}
	if ref.File == "" {
		revision := filepath.Join("refs", filepath.FromSlash(ref.Revision))
		if err := cache.Remove(revision); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true, err
		}
		if err := cache.RemoveAll(filepath.Join("snapshots", commit)); err != nil {
			return true, err
		}
	}
	shown := map[string]bool{}
	err = fs.WalkDir(os.DirFS(filepath.Join(cache.Name(), "snapshots")), ".", func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			target, _ := os.Readlink(filepath.Join(cache.Name(), "snapshots", filepath.FromSlash(file)))
			shown[filepath.Base(target)] = true
			more = more || d.Name() != "README.md" // the card came along with the file
		}
		return err
	})
	if err != nil {
		return true, err
	}
	for _, blob := range blobs {
		if !shown[blob] {
			if err := cache.Remove(filepath.Join("blobs", blob)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return true, err
			}
		}
	}
	return more, nil
}
