package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A hubFile is a file of a repository as the hub lists it.
type hubFile struct {
	Path   string
	Size   int64  // bytes; -1 where a mirror leaves it out
	SHA256 string // of files in large-file storage
	GitOID string // of the others
}

func (f hubFile) want() want { return want{Size: f.Size, SHA256: f.SHA256, GitOID: f.GitOID} }

// blob is the file's name in the cache: its ETag, as huggingface_hub has it.
func (f hubFile) blob() string {
	if f.SHA256 != "" {
		return f.SHA256
	}
	return f.GitOID
}

// A hubRepo is a repository at one commit.
type hubRepo struct {
	Commit string // 40 hex digits
	Files  []hubFile
}

const maxListing = 32 << 20 // some 10^5 files

// hubRepo asks for the files of a repository at a revision.
func (s *Store) hubRepo(ctx context.Context, ref Ref) (hubRepo, error) {
	rev := ref.Revision
	if rev == "" {
		rev = "main"
	}
	address := fmt.Sprintf("%s/api/models/%s/revision/%s?blobs=true", s.Endpoint, ref.Repo, url.PathEscape(rev))
	var body []byte
	err := s.retry(ctx, func() error {
		resp, err := s.get(ctx, http.MethodGet, address, s.Token, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return s.denied(ref)(resp)
		}
		if err := refuseWebPage(resp); err != nil {
			return err
		}
		body, err = readAll(resp.Body, maxListing)
		return err
	})
	if err != nil {
		return hubRepo{}, s.asked(err)
	}
	repo, err := parseListing(body)
	if err != nil {
		return repo, s.asked(fmt.Errorf("the file list from %s: %w", s.host(), err))
	}
	return repo, nil
}

func parseListing(body []byte) (hubRepo, error) {
	var list struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
			Size *int64 `json:"size"`
			Blob string `json:"blobId"`
			LFS  *struct {
				SHA256 string `json:"sha256"`
				Size   int64  `json:"size"`
			} `json:"lfs"`
		} `json:"siblings"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return hubRepo{}, err
	}
	if !isHex(list.SHA, 40) {
		return hubRepo{}, fmt.Errorf("commit %q is not 40 hexadecimal digits", printable(list.SHA))
	}
	repo := hubRepo{Commit: list.SHA, Files: make([]hubFile, 0, len(list.Siblings))}
	seen := make(map[string]bool, len(list.Siblings))
	for _, e := range list.Siblings {
		if checkPath(e.Name) != nil || seen[e.Name] {
			continue // a name that cannot be stored cannot be chosen, and no name means two files
		}
		seen[e.Name] = true
		f := hubFile{Path: e.Name, Size: -1}
		if e.Size != nil && *e.Size >= 0 {
			f.Size = *e.Size
		}
		switch {
		case e.LFS != nil && isHex(e.LFS.SHA256, 64) && e.LFS.Size >= 0:
			f.SHA256, f.Size = e.LFS.SHA256, e.LFS.Size
		case e.LFS == nil && isHex(e.Blob, 40) && f.Size >= 0:
			f.GitOID = e.Blob
		}
		repo.Files = append(repo.Files, f)
	}
	return repo, nil
}

// head completes an entry that a mirror listed without size or digest from the header of the file itself. Of mirrors
// only the tag of large-file storage is a digest for certain, so other tags merely name the blob.
func (s *Store) head(ctx context.Context, ref Ref, commit string, f hubFile) (file hubFile, blob string, err error) {
	if f.Size >= 0 && f.blob() != "" {
		return f, f.blob(), nil
	}
	var header http.Header
	address := s.resolve(ref.Repo, commit, f.Path)
	err = s.retry(ctx, func() error {
		resp, err := s.get(ctx, http.MethodHead, address, s.Token, nil)
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode >= 400 {
			return s.denied(ref)(resp)
		}
		header = resp.Header
		return nil
	})
	if err != nil {
		return f, "", s.asked(err)
	}
	size, linked := header.Get("X-Linked-Size"), strings.Trim(strings.TrimPrefix(header.Get("X-Linked-Etag"), "W/"), `"`)
	if size == "" && header.Get("Location") == "" {
		size = header.Get("Content-Length")
	}
	if f.Size, err = strconv.ParseInt(size, 10, 64); err != nil || f.Size < 0 {
		return f, "", fmt.Errorf("%s names no size for %s", s.host(), f.Path)
	}
	if isHex(linked, 64) {
		f.SHA256 = linked
	}
	etag := strings.Trim(strings.TrimPrefix(header.Get("ETag"), "W/"), `"`)
	for _, blob := range []string{linked, etag} {
		if isHex(blob, 64) || isHex(blob, 40) {
			return f, blob, nil
		}
	}
	return f, "", fmt.Errorf("%s names no digest for %s (neither X-Linked-Etag nor ETag)", s.host(), f.Path)
}

// resolve is the address of a file's content.
func (s *Store) resolve(repo, commit, file string) string {
	parts := strings.Split(file, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return fmt.Sprintf("%s/%s/resolve/%s/%s", s.Endpoint, repo, url.PathEscape(commit), strings.Join(parts, "/"))
}

func (s *Store) host() string {
	if u, err := url.Parse(s.Endpoint); err == nil && u.Host != "" {
		return u.Host
	}
	return s.Endpoint
}

// hubSite is asked unless HF_ENDPOINT names a mirror.
const hubSite = "https://huggingface.co"

// asked adds to what stood in the way of the hub that it was a mirror: whoever set HF_ENDPOINT may have forgotten.
func (s *Store) asked(err error) error {
	var disk *diskError
	if err == nil || s.Endpoint == hubSite || errors.As(err, &disk) {
		return err
	}
	return fmt.Errorf("%w (HF_ENDPOINT is set to %s, which is what was tried)", err, printable(s.Endpoint))
}

// denied explains what the hub refused. Its X-Error-Code tells more than the status: a gated repository answers 401
// with a wrong token and with none, and so does one that does not exist.
func (s *Store) denied(ref Ref) func(*http.Response) error {
	return func(resp *http.Response) error {
		page := s.Endpoint + "/" + ref.Repo
		switch code := resp.Header.Get("X-Error-Code"); {
		case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusProxyAuthRequired:
			return statusError(resp)
		case code == "GatedRepo" && s.Token == "":
			return fmt.Errorf("the model is gated: accept its licence at %s and set HF_TOKEN to a token of that account", page)
		case code == "GatedRepo":
			return fmt.Errorf("the model is gated and the account of HF_TOKEN has no access yet: accept its licence at %s", page)
		case code == "RevisionNotFound":
			return fmt.Errorf("the repository has no revision %q", ref.Revision)
		case code == "EntryNotFound":
			return errors.New("the repository has no such file")
		case resp.StatusCode == http.StatusUnauthorized && s.Token == "" || code == "RepoNotFound" || resp.StatusCode == http.StatusNotFound:
			return fmt.Errorf("there is no such repository (look at %s), or it is private and HF_TOKEN holds no token with access", page)
		case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden && s.Token != "":
			return fmt.Errorf("%w: HF_TOKEN is not accepted for %s", statusError(resp), page)
		}
		return statusError(resp)
	}
}

// pullHub brings a model of the hub into its cache.
func (s *Store) pullHub(ctx context.Context, ref Ref, p Progress) (Model, error) {
	have, err := s.findHub(ref)
	if err == nil && (s.Offline || isHex(ref.Revision, 40)) {
		return have, nil // a commit never changes; a branch may have moved on
	}
	if s.Offline {
		return Model{}, errOffline
	}
	p.event(Event{Stage: StageResolve, Source: ref.String()})
	repo, lookup := s.hubRepo(ctx, ref)
	var gone *unreachable
	var later transient
	if err == nil && (errors.As(lookup, &gone) || errors.As(lookup, &later)) {
		p.event(Event{Stage: StageKeep, Source: ref.String(), Err: lookup})
		return have, nil
	}
	if lookup != nil {
		return Model{}, lookup
	}
	cache, err := s.openCache(ref.Repo)
	if err != nil {
		return Model{}, err
	}
	defer prune(cache.Name()) // only a pull that failed at once leaves folders without files
	defer cache.Close()
	fetch := func(files []hubFile) error {
		for i, f := range files {
			waiting := func() { p.event(Event{Stage: StageWait, Source: ref.String(), File: f.Path}) }
			if err := s.fetchHub(ctx, cache, ref, repo.Commit, f, waiting, p.download(ref, f.Path, i, len(files))); err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
		}
		return nil
	}
	weights := weightFiles(repo.Files)
	var files []hubFile
	if ref.File != "" || len(weights) == 0 {
		if files, err = ggufFile(ref, repo.Files); err != nil {
			return Model{}, err
		}
		ref.File = files[0].Path
	} else {
		// The index says which files are the weights, so it comes first.
		small := smallFiles(repo.Files)
		if _, err := named(small, []string{"config.json"}); err != nil {
			return Model{}, fmt.Errorf("%w, so its weights cannot be used", err)
		}
		if i := slices.IndexFunc(small, func(f hubFile) bool { return f.Path == indexName }); i >= 0 {
			if err := fetch(small[i : i+1]); err != nil {
				return Model{}, err
			}
			shards, err := readShards(filepath.Join(cache.Name(), "snapshots", repo.Commit))
			if err != nil {
				return Model{}, err
			}
			if weights, err = named(repo.Files, shards); err != nil {
				return Model{}, fmt.Errorf("%s: %w", indexName, err)
			}
		}
		files = append(small, weights...)
	}
	if free, ok := s.free(cache.Name()); ok {
		if need := missing(cache.Name(), repo.Commit, files); need > free {
			return Model{}, &diskError{cache.Name(), fmt.Errorf("%s more are needed, %s are free", ByteSize(need), ByteSize(free))}
		}
	}
	if err := fetch(files); err != nil {
		return Model{}, err
	}
	if err := writeRef(cache, ref.Revision, repo.Commit); err != nil {
		return Model{}, err
	}
	return s.findHub(ref)
}

var errOffline = errors.New("not asked, because HF_HUB_OFFLINE is set")

// missing returns how many bytes of the files are still to come: better to know before the first hundred gigabytes.
func missing(cache, commit string, files []hubFile) (bytes int64) {
	size := func(parts ...string) int64 {
		if st, err := os.Stat(filepath.Join(append([]string{cache}, parts...)...)); err == nil {
			return st.Size()
		}
		return 0
	}
	for _, f := range files {
		here := max(size("snapshots", commit, filepath.FromSlash(f.Path)), size("blobs", f.blob()+".partial"))
		if f.blob() != "" {
			here = max(here, size("blobs", f.blob()))
		}
		bytes += max(0, f.Size-here)
	}
	return bytes
}

// fetchHub brings one file into the cache: the content under blobs, a link to it under the commit.
func (s *Store) fetchHub(ctx context.Context, cache *os.Root, ref Ref, commit string, f hubFile, waiting func(), report report) error {
	place := filepath.Join("snapshots", commit, filepath.FromSlash(f.Path))
	has := func(name string) bool {
		// os.Stat rather than the root's: blobs may be links into a store that repositories share.
		st, err := os.Stat(filepath.Join(cache.Name(), name))
		return err == nil && st.Mode().IsRegular() && (f.Size < 0 || st.Size() == f.Size)
	}
	if has(place) {
		return nil
	}
	f, blob, err := s.head(ctx, ref, commit, f)
	if err != nil {
		return err
	}
	lockFile := filepath.Join(s.HubCache, ".locks", filepath.Base(cache.Name()), blob+".lock") // where huggingface_hub has it
	unlock, err := lock(ctx, lockFile, waiting)
	if err != nil {
		return err
	}
	defer unlock()
	if has(place) {
		return nil
	}
	content := filepath.Join("blobs", blob)
	if !has(content) {
		_, err := s.download(ctx, cache, download{
			url:   s.resolve(ref.Repo, commit, f.Path),
			token: s.Token,
			name:  content,
			want:  f.want(),
			gguf:  strings.HasSuffix(f.Path, ".gguf"),
			deny:  s.denied(ref),
		}, report)
		if err != nil {
			return s.asked(err)
		}
	}
	return link(cache, content, place)
}

// readShards returns the files that the index in a folder names, sorted; nil without an index.
func readShards(folder string) ([]string, error) {
	f, err := os.Open(filepath.Join(folder, indexName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	b, err := readAll(f, maxSmallFile)
	if err == nil {
		err = json.Unmarshal(b, &index)
	}
	if err == nil && len(index.WeightMap) == 0 {
		err = errors.New("weight_map is missing or empty")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", indexName, err)
	}
	shards := slices.Compact(slices.Sorted(maps.Values(index.WeightMap)))
	for _, shard := range shards {
		if err := checkPath(shard); err != nil {
			return nil, fmt.Errorf("%s: %w", indexName, err)
		}
	}
	return shards, nil
}
