package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// object is a table or an index as the database describes it. If the row of an object is
// damaged, the journal's rows may still be sound, but SQLite reads them wrongly.
type object struct {
	id              int64
	kind, name, tbl string
	sql             string // empty if SQLite created it
}

// text returns the object without its row number, which differs in a copy.
func (o object) text() string { return strings.Join([]string{o.kind, o.name, o.tbl, o.sql}, "\x00") }

// shape returns the tables and indexes of a database.
func shape(q querier) (found []object, err error) {
	rows, err := q.Query("SELECT rowid, type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o object
		if err := rows.Scan(&o.id, &o.kind, &o.name, &o.tbl, &o.sql); err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, rows.Err()
}

// shapes returns the tables and indexes of each schema version, from 0 on.
func shapes() (all [schemaVersion + 1][]object, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return all, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection would have its own database
	for v := range all {
		if v > 0 {
			if _, err := db.Exec(migrations[v-1]); err != nil {
				return all, err
			}
		}
		if all[v], err = shape(db); err != nil {
			return all, err
		}
	}
	return all, nil
}

// schema returns the schema version of a journal. The error means that it is newer than
// this program's, or that the tables do not match it.
func schema(q querier) (v int, err error) {
	v, err = version(q)
	if err != nil && !errors.Is(err, ErrNewer) {
		return v, err
	}
	found, err2 := shape(q)
	known, err3 := shapes()
	if err2 = errors.Join(err2, err3); err2 != nil {
		return v, err2
	}
	is, differ := nearest(known[:], found)
	switch {
	case differ == 0 && is == v:
		return v, nil
	case differ == 0:
		return v, fmt.Errorf("%w: it says that it is of schema %d, and its tables are those of schema %d", ErrDamaged, v, is)
	case err != nil:
		return v, err // the tables of a newer schema are unknown to this program
	}
	_, differ = nearest(known[v:v+1], found)
	return v, fmt.Errorf("%w: %d descriptions of its tables and indexes are not those of schema %d", ErrDamaged, differ, v)
}

// nearest returns the schema version with the least difference in shape to the found one,
// and the number of tables and indexes that differ.
func nearest(known [][]object, found []object) (is, differ int) {
	for v := range known {
		missing, strange := compareShapes(known[v], found)
		if n := max(len(missing), len(strange)); v == 0 || n <= differ {
			is, differ = v, n
		}
	}
	return is, differ
}

// compareShapes returns the objects that are known and not found, and the objects that are
// found and not known.
func compareShapes(known, found []object) (missing, strange []object) {
	there := map[string]bool{}
	for _, o := range found {
		there[o.text()] = true
	}
	for _, o := range known {
		if !there[o.text()] {
			missing = append(missing, o)
		}
		delete(there, o.text())
	}
	for _, o := range found {
		if there[o.text()] {
			strange = append(strange, o)
		}
	}
	return missing, strange
}

// reshape gives a damaged database the descriptions of the nearest schema. The
// descriptions do not affect where rows are stored. mended is the number of changes.
func reshape(path string) (mended int, err error) {
	db, err := connectFile(path, 1, []string{"busy_timeout(10000)", "writable_schema(1)"})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	found, err := shape(db)
	known, err2 := shapes()
	if err = errors.Join(err, err2); err != nil {
		return 0, err
	}
	is, _ := nearest(known[:], found)
	missing, strange := compareShapes(known[is], found)
	for _, o := range strange {
		want, ok := likest(missing, o)
		if !ok {
			continue
		}
		missing = slices.DeleteFunc(missing, func(o object) bool { return o == want })
		_, err := db.Exec("UPDATE sqlite_schema SET type = ?, name = ?, tbl_name = ?, sql = nullif(?, '') WHERE rowid = ?",
			want.kind, want.name, want.tbl, want.sql, o.id)
		if err != nil {
			return mended, err
		}
		mended++
	}
	var v int
	if err := db.QueryRow("PRAGMA user_version").Scan(&v); err == nil && v == is {
		return mended, nil
	}
	_, err = db.Exec(fmt.Sprintf("PRAGMA user_version = %d", is))
	return mended + 1, err
}

// likest returns the object that is most similar to o. Damage has probably turned this object
// into o. It has the same length, and differs in fewer than eight bytes.
func likest(of []object, o object) (best object, ok bool) {
	least := 8
	for _, want := range of {
		a, b, differ := want.text(), o.text(), 0
		for i := 0; i < len(a) && len(a) == len(b); i++ {
			if a[i] != b[i] {
				differ++
			}
		}
		if len(a) == len(b) && differ < least {
			best, least, ok = want, differ, true
		}
	}
	return best, ok
}
