package pull

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A Model is on this machine, whole and checked when it arrived.
type Model struct {
	Name     string // what Find, Pull and Remove take
	Path     string // the .gguf file (its first split), or the folder of a safetensors model
	Source   string // where it came from
	Size     int64  // bytes of all files
	Licence  string // as its publisher states it; "" unknown
	Modified time.Time
	Files    []File
}

// A File is a part of a model.
type File struct {
	Name   string `json:"name"` // slash-separated, relative to the model's folder
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256,omitempty"`
}

// A manifest describes a folder of the store. It is written after the files, so its presence says that they are whole.
type manifest struct {
	Name    string    `json:"name"`
	Source  string    `json:"source"`
	Licence string    `json:"licence,omitempty"`
	Pulled  time.Time `json:"pulled"`
	Files   []File    `json:"files"` // the first is the one to load
}

const (
	manifestName = "manifest.json"
	maxManifest  = 1 << 20
)

func (m manifest) write(root *os.Root) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	const temp = manifestName + ".new"
	if err := root.WriteFile(temp, append(b, '\n'), 0o644); err != nil {
		return err
	}
	return root.Rename(temp, manifestName)
}

// readManifest returns the model in a folder of the store. The manifest is checked like any file from elsewhere, and
// its files must be there in their full sizes.
func readManifest(folder string) (Model, error) {
	f, err := os.Open(filepath.Join(folder, manifestName))
	if err != nil {
		return Model{}, err
	}
	defer f.Close()
	b, err := readAll(f, maxManifest)
	var m manifest
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err == nil && len(m.Files) == 0 {
		err = errors.New("it lists no files")
	}
	if err != nil {
		return Model{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	model := Model{Name: m.Name, Source: m.Source, Licence: m.Licence, Modified: m.Pulled, Files: m.Files}
	for _, file := range m.Files {
		if err := checkFileName(file.Name); err != nil {
			return Model{}, fmt.Errorf("%s: %w", f.Name(), err)
		}
		place := filepath.Join(folder, file.Name)
		if st, err := os.Lstat(place); err != nil || !st.Mode().IsRegular() || st.Size() != file.Size {
			return Model{}, fmt.Errorf("%s is not the file of %d bytes that its manifest lists", place, file.Size)
		}
		model.Size += file.Size
	}
	model.Path = filepath.Join(folder, m.Files[0].Name)
	return model, nil
}
