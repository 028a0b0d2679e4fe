package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// splitPart parses NAME-00002-of-00003.gguf, the name of part 2 of 3.
func splitPart(name string) (set string, part, parts int, ok bool) {
	const suffix = "-00001-of-00003.gguf"
	at := len(name) - len(suffix)
	if at < 0 || name[at] != '-' || name[at+6:at+10] != "-of-" || !strings.HasSuffix(name, ".gguf") {
		return "", 0, 0, false
	}
	p, err1 := strconv.ParseUint(name[at+1:at+6], 10, 32)
	n, err2 := strconv.ParseUint(name[at+10:at+15], 10, 32)
	if err := errors.Join(err1, err2); err != nil || p < 1 || p > n {
		return "", 0, 0, false
	}
	return name[:at], int(p), int(n), true
}

// openGGUF opens a GGUF file or, given any part, all parts of a split one.
// The first part holds the metadata.
func (c *Checkpoint) openGGUF(path string) error {
	set, _, parts, split := splitPart(filepath.Base(path))
	if !split {
		parts = 1
	}
	tensors := 0
	for part := 1; part <= parts; part++ {
		file := path
		if split {
			file = filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%05d.gguf", set, part, parts))
		}
		m, err := c.mapFile(file)
		if isNotExist(err) {
			return fmt.Errorf("part %d of %d is missing: %w", part, parts, err)
		}
		if err != nil {
			return err
		}
		meta, found, err := readGGUF(m)
		if err != nil {
			return err
		}
		if part == 1 {
			c.meta = meta
		}
		if err := checkPart(meta, part, parts); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, e := range found {
			if err := c.add(hfName(c.meta.Arch(), e.Stored), e); err != nil {
				return err
			}
		}
		tensors += len(found)
	}
	if want, ok := c.meta.Int("split.tensors.count"); ok && want != int64(tensors) {
		return fmt.Errorf("%s: split.tensors.count %d, but all parts together hold %d tensors", path, want, tensors)
	}
	return nil
}

func readGGUF(m *mapping) (meta *Metadata, tensors []*entry, err error) {
	err = guard([]*mapping{m}, func() error {
		meta, tensors, err = parseGGUF(m.path, m.data)
		return err
	})
	return meta, tensors, err
}

// checkPart compares what a file says about being a part (split.no counts
// from 0) with its name. Files that say nothing are whole.
func checkPart(meta *Metadata, part, parts int) error {
	count := int64(1)
	if n, ok := meta.Int("split.count"); ok {
		count = max(n, 1) // 0 is written too for a whole file
	}
	no, _ := meta.Int("split.no")
	if count != int64(parts) || no != int64(part-1) {
		return fmt.Errorf("split.no %d of split.count %d: expected a file name -%05d-of-%05d.gguf", no, count, no+1, count)
	}
	return nil
}
