package pull

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The cache as huggingface_hub lays it out:
//
//	models--org--repo/blobs/<ETag>                 content: named by SHA-256 in large-file storage, else by git digest
//	models--org--repo/snapshots/<commit>/<file>    links to blobs; the files themselves where links do not work
//	models--org--repo/refs/<branch or tag>         the commit it pointed to when it was last looked up

func cacheFolder(repo string) string { return "models--" + strings.Replace(repo, "/", "--", 1) }

// repoOf is the inverse of cacheFolder. Names of repositories hold no "--".
func repoOf(folder string) (repo string, ok bool) {
	name, ok := strings.CutPrefix(folder, "models--")
	org, repo, found := strings.Cut(name, "--")
	ref, err := parseHub(org + "/" + repo)
	return ref.Repo, ok && found && err == nil && cacheFolder(ref.Repo) == folder
}

// openCache opens the folder of a repository, making it if it is not there.
func (s *Store) openCache(repo string) (*os.Root, error) {
	folder := filepath.Join(s.HubCache, cacheFolder(repo))
	for _, sub := range []string{"blobs", "snapshots", "refs"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o755); err != nil {
			return nil, err
		}
	}
	return os.OpenRoot(folder)
}

var symlink = (*os.Root).Symlink // tests stand in for systems without links

// link makes place show content, both relative to the repository's folder.
func link(cache *os.Root, content, place string) error {
	if err := cache.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	if err := cache.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	target, err := filepath.Rel(filepath.Dir(place), content)
	if err != nil {
		return err
	}
	err = symlink(cache, target, place)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	// Windows lets only administrators and developers make links. The file then moves to its place, which is what
	// huggingface_hub does and looks for.
	return cache.Rename(content, place)
}

// writeRef notes the commit of a revision. It comes last, so that a cut pull leaves the name on the old, whole snapshot.
func writeRef(cache *os.Root, revision, commit string) error {
	if isHex(revision, 40) {
		return nil
	}
	if revision == "" {
		revision = "main"
	}
	name := filepath.Join("refs", filepath.FromSlash(revision))
	if old, err := cache.ReadFile(name); err == nil && strings.TrimSpace(string(old)) == commit {
		return nil // the cache may be read-only
	}
	if err := cache.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return cache.WriteFile(name, []byte(commit), 0o644)
}

// commitOf returns the commit a revision stood for when it was last looked up.
func (s *Store) commitOf(repo, revision string) (string, error) {
	if isHex(revision, 40) {
		return revision, nil
	}
	if revision == "" {
		revision = "main"
	}
	f, err := os.Open(filepath.Join(s.HubCache, cacheFolder(repo), "refs", filepath.FromSlash(revision)))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64))
	commit := strings.TrimSpace(string(b))
	if err == nil && !isHex(commit, 40) {
		err = fmt.Errorf("%s holds %q, not a commit", f.Name(), printable(commit))
	}
	return commit, err
}

func (s *Store) snapshot(repo, commit string) string {
	return filepath.Join(s.HubCache, cacheFolder(repo), "snapshots", commit)
}

// findHub returns the model of a repository that is in the cache, whole, whoever downloaded it.
func (s *Store) findHub(ref Ref) (Model, error) {
	commit, err := s.commitOf(ref.Repo, ref.Revision)
	if err != nil {
		return Model{}, err
	}
	models := snapshotModels(s.snapshot(ref.Repo, commit), Ref{Kind: KindHub, Repo: ref.Repo, Revision: ref.Revision})
	for _, m := range models {
		if m.Name == ref.String() {
			return m, nil
		}
	}
	if ref.File == "" && len(models) == 1 {
		return models[0], nil // the one GGUF file
	}
	return Model{}, fmt.Errorf("not in the cache: %w", fs.ErrNotExist)
}

// snapshotModels returns what can be loaded from a snapshot: the safetensors model under the name of ref, and each
// GGUF model under the name of its file. Models of which a file is missing are left out.
func snapshotModels(folder string, ref Ref) []Model {
	var models []Model
	add := func(name, source Ref, load string, files []string) {
		m := Model{Name: name.String(), Source: source.String(), Path: load, Licence: cardLicence(folder)}
		for _, file := range files {
			place := filepath.Join(folder, filepath.FromSlash(file))
			st, err := os.Stat(place) // follows the link, if it is one
			if err != nil || !st.Mode().IsRegular() {
				return
			}
			f := File{Name: file, Size: st.Size()}
			if target, err := os.Readlink(place); err == nil && isHex(filepath.Base(target), 64) {
				f.SHA256 = filepath.Base(target)
			}
			if m.Size += f.Size; st.ModTime().After(m.Modified) {
				m.Modified = st.ModTime()
			}
			m.Files = append(m.Files, f)
		}
		models = append(models, m)
	}
	var all []hubFile
	var small, ggufs []string
	walkFiles(folder, func(file string) {
		f := hubFile{Path: file}
		all = append(all, f)
		switch {
		case isSmall(f):
			small = append(small, file)
		case path.Ext(file) == ".gguf" && !strings.HasPrefix(path.Base(file), "mmproj"):
			ggufs = append(ggufs, file)
		}
	})
	weights, err := readShards(folder)
	if weights == nil && err == nil {
		weights = wholeWeights(weightFiles(all))
	}
	if slices.Contains(small, "config.json") && len(weights) > 0 {
		add(ref, ref, folder, append(small, weights...))
	}
	for _, file := range ggufs {
		if set, err := splits(file); err == nil && set[0] == file {
			one := ref
			one.File = file
			add(one, one, filepath.Join(folder, filepath.FromSlash(file)), set)
		}
	}
	return models
}

// wholeWeights returns the paths of weights that no index lists, nil if their numbers show that some are missing.
func wholeWeights(files []hubFile) (paths []string) {
	for _, f := range files {
		var at, of int
		if n, _ := fmt.Sscanf(f.Path, "model-%d-of-%d.", &at, &of); n == 2 && of != len(files) {
			return nil
		}
		paths = append(paths, f.Path)
	}
	return paths
}

// walkFiles calls visit for the files of a snapshot, in order. Repositories are shallow; what lies deeper than a few
// folders is no model.
func walkFiles(folder string, visit func(file string)) {
	_ = fs.WalkDir(os.DirFS(folder), ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir // what cannot be read is not there
		case d.IsDir() && strings.Count(file, "/") >= 3:
			return fs.SkipDir
		case !d.IsDir() && checkPath(file) == nil:
			visit(file)
		}
		return nil
	})
}

// cardLicence reads the licence from the front matter of a model card: lines of YAML between two lines "---".
func cardLicence(folder string) string {
	f, err := os.Open(filepath.Join(folder, "README.md"))
	if err != nil {
		return ""
	}
	defer f.Close()
	var licence string
	lines := bufio.NewScanner(io.LimitReader(f, 64<<10))
	if !lines.Scan() || strings.TrimSpace(lines.Text()) != "---" {
		return ""
	}
	for lines.Scan() && strings.TrimSpace(lines.Text()) != "---" {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = printable(strings.Trim(strings.TrimSpace(value), `"'`))
		switch {
		case key == "license" && value != "":
			licence = value
		case key == "license_name" && (licence == "other" || licence == ""):
			licence = value
		}
	}
	return licence
}

// listHub returns the models in the cache. A commit that a branch or tag points to goes by that name.
func (s *Store) listHub() ([]Model, error) {
	entries, err := os.ReadDir(s.HubCache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var models []Model
	for _, e := range entries {
		repo, ok := repoOf(e.Name())
		if !ok {
			continue
		}
		folder := filepath.Join(s.HubCache, e.Name())
		names := map[string]string{} // commit -> revision
		walkFiles(filepath.Join(folder, "refs"), func(revision string) {
			if commit, err := s.commitOf(repo, revision); err == nil && names[commit] != "main" {
				names[commit] = revision
			}
		})
		commits, err := os.ReadDir(filepath.Join(folder, "snapshots"))
		if err != nil {
			continue
		}
		for _, c := range commits {
			if !isHex(c.Name(), 40) {
				continue
			}
			revision, ok := names[c.Name()]
			switch {
			case !ok:
				revision = c.Name()
			case revision == "main":
				revision = ""
			}
			models = append(models, snapshotModels(filepath.Join(folder, "snapshots", c.Name()), Ref{Kind: KindHub, Repo: repo, Revision: revision})...)
		}
	}
	return models, err
}
