package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const singleName = "model.safetensors"

// Open opens the checkpoint at path:
//
//   - a directory with model.safetensors, model.safetensors.index.json or
//     one GGUF model, looked for in this order;
//   - a .safetensors file;
//   - a GGUF file, or any part of a split one (NAME-00001-of-00003.gguf).
//
// Files are checked completely against their size, but no tensor is read.
func Open(path string) (*Checkpoint, error) {
	c := &Checkpoint{path: path, byName: map[string]*entry{}, block: fp8Block}
	if err := c.open(path); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.seal()
	return c, nil
}

func (c *Checkpoint) open(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return pathError(path, err)
	}
	c.dir = filepath.Dir(path)
	if info.IsDir() {
		c.dir = path
		if path, err = weightsIn(path); err != nil {
			return err
		}
	}
	isGGUF := strings.HasSuffix(path, ".gguf")
	if !isGGUF {
		// Stores that name files by their digest leave no suffix.
		if isGGUF, err = startsWith(path, ggufMagic); err != nil {
			return err
		}
	}
	switch {
	case isGGUF:
		c.format = GGUF
		return c.openGGUF(path)
	case filepath.Base(path) == indexName:
		c.format = Safetensors
		err = c.openSharded(path)
	case strings.HasSuffix(path, ".safetensors"):
		c.format = Safetensors
		err = c.openSafetensors(path)
	default:
		return fmt.Errorf("%s: expected a directory, a .safetensors file or a GGUF file", path)
	}
	if err != nil {
		return err
	}
	return c.readConfig()
}

// weightsIn chooses the weights in a directory: the file to open.
func weightsIn(dir string) (string, error) {
	// Where both exist, the single file counts, as in transformers. A link
	// to nowhere counts too: an interrupted download deserves its own error.
	for _, name := range []string{singleName, indexName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name), nil
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", pathError(dir, err)
	}
	var models, others, pickled []string // models: without the further parts of split files
	parts := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasSuffix(name, ".safetensors"):
			others = append(others, name)
		case strings.HasSuffix(name, ".pth"), strings.HasPrefix(name, "pytorch_model") && strings.HasSuffix(name, ".bin"):
			pickled = append(pickled, name)
		case !strings.HasSuffix(name, ".gguf") || strings.HasPrefix(name, "mmproj"):
			// mmproj: the image encoder that accompanies a model
		default:
			if set, _, n, ok := splitPart(name); ok {
				key := fmt.Sprint(set, "/", n)
				if parts[key] {
					continue
				}
				parts[key] = true
			}
			models = append(models, name)
		}
	}
	switch {
	case len(models) == 1:
		return filepath.Join(dir, models[0]), nil
	case len(models) > 1:
		return "", fmt.Errorf("%s: %d models: name one of %s", dir, len(models), listed(models))
	case slices.ContainsFunc(others, isShard):
		return "", fmt.Errorf("%s: %s is missing: without it %s cannot be put together", dir, indexName, listed(others))
	case len(others) > 0:
		return "", fmt.Errorf("%s: no %s or %s: to open %s, name it", dir, singleName, indexName, listed(others))
	}
	if len(pickled) > 0 {
		return "", fmt.Errorf("%s: %s: pickled PyTorch weights are not supported: convert them to safetensors", dir, listed(pickled))
	}
	return "", fmt.Errorf("%s: no weights: expected %s, %s or a .gguf file", dir, singleName, indexName)
}

var shardName = regexp.MustCompile(`^model-[0-9]+-of-[0-9]+\.safetensors$`)

// isShard tells one of several files with weights by its name.
func isShard(name string) bool { return shardName.MatchString(name) }

// listed joins names for a message, the first few of many.
func listed(names []string) string {
	const limit = 8
	if len(names) > limit {
		return strings.Join(names[:limit], ", ") + fmt.Sprintf(" and %d more", len(names)-limit)
	}
	return strings.Join(names, ", ")
}

// startsWith reports whether the file at path starts with magic.
func startsWith(path, magic string) (bool, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	start := make([]byte, len(magic))
	if _, err := io.ReadFull(f, start); err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false, pathError(path, err)
	}
	return bytes.Equal(start, []byte(magic)), nil
}

// isNotExist tells a file that is absent from one that cannot be read.
func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
