//! Profiles whose files overlap.

use super::*;
use crate::service::provision::drift::Drift;
use crate::service::provision::status;

const SETTINGS: &str = ".claude/settings.json";

/// A profile that merges a text into the settings, and the time of its installation.
fn profile(slug: &str, text: &str) -> Package {
    Package::new(slug, "1", vec![piece(SETTINGS, Strategy::MergeJsonDeep, text)]).unwrap()
}

fn all() -> [Package; 3] {
    [
        profile("a", r#"{"model": "a", "allow": ["Read", "Bash"], "env": {"X": "1", "Y": "1"}}"#),
        profile("b", r#"{"model": "b", "allow": ["Read", "Edit"], "env": {"X": "2"}, "mode": "auto"}"#),
        profile("c", r#"{"model": "a", "allow": ["Bash", "Edit"], "env": {"Z": "3"}, "mode": "auto"}"#),
    ]
}

fn install_one(files: &dyn TargetFiles, package: &Package, at: usize) {
    let origin = Origin { from: package.slug.clone(), at: format!("2026-01-01T00:00:0{at}.000Z") };
    done(install::install(files, ".", package, &origin, REAL));
}

fn settings(dir: &TempDir) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dir.path().join(SETTINGS)).unwrap()).unwrap()
}

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[test]
fn values_and_items_come_back_whatever_the_order() {
    for inward in ORDERS {
        for outward in ORDERS {
            let (dir, files) = place();
            let before = theirs(dir.path());
            for (at, which) in inward.iter().enumerate() {
                install_one(&files, &all()[*which], at);
            }
            let mut left = inward.to_vec();
            for which in outward {
                done(uninstall::uninstall(&files, ".", &all()[which].slug, REAL));
                left.retain(|one| *one != which);
                // The result equals an installation of only these profiles.
                let (other, fresh) = place();
                left.iter().enumerate().for_each(|(at, which)| install_one(&fresh, &all()[*which], at));
                assert_eq!(settings(&dir), settings(&other), "{inward:?}, without {which} of {outward:?}");
                for standing in status::status(&files, ".", None).unwrap() {
                    assert!(standing.is_intact(), "{inward:?} {outward:?}: {:?}", standing.report());
                }
            }
            assert_eq!(theirs(dir.path()), before, "{inward:?} {outward:?}");
        }
    }
}

#[test]
fn an_edit_in_between_stays() {
    let (dir, files) = place();
    (0..3).for_each(|at| install_one(&files, &all()[at], at));
    let mut edited = settings(&dir);
    edited["mine"] = 1.into();
    edited["allow"].as_array_mut().unwrap().push("Mine".into());
    std::fs::write(dir.path().join(SETTINGS), edited.to_string()).unwrap();
    for slug in ["b", "a", "c"] {
        done(uninstall::uninstall(&files, ".", slug, REAL));
    }
    let expected = serde_json::json!({"mode": "ask", "allow": ["Mine"], "mine": 1});
    assert_eq!(settings(&dir), expected);
}

#[test]
fn what_another_profile_has_set_is_no_edit_and_it_is_named() {
    let (dir, files) = place();
    (0..2).for_each(|at| install_one(&files, &all()[at], at));
    let standings = status::status(&files, ".", Some("a")).unwrap();
    let file = &standings[0].files[0];
    assert_eq!((file.stands, &*file.shared), (Drift::EditedAround, &["b".to_owned()][..]));
    assert!(standings[0].is_intact());
    let mut edited = settings(&dir);
    edited["env"]["Y"] = "mine".into();
    std::fs::write(dir.path().join(SETTINGS), edited.to_string()).unwrap();
    let of = |slug| status::status(&files, ".", Some(slug)).unwrap()[0].files[0].stands;
    assert_eq!((of("a"), of("b")), (Drift::Edited, Drift::EditedAround));
}

#[test]
fn whatever_write_it_dies_before_the_next_command_completes_it() {
    for writes in 0.. {
        assert!(writes < 500, "it never ends");
        let (dir, files) = place();
        let before = theirs(dir.path());
        (0..3).for_each(|at| install_one(&files, &all()[at], at));
        let dying = Dying { files: &files, root: dir.path(), left: Cell::new(writes) };
        let whole = uninstall::uninstall(&dying, ".", "a", REAL).is_ok();
        // The profile may already be uninstalled, except for its setup.
        let _ = uninstall::uninstall(&files, ".", "a", REAL);
        for slug in ["b", "c"] {
            done(uninstall::uninstall(&files, ".", slug, REAL));
        }
        assert_eq!(theirs(dir.path()), before, "after {writes} writes");
        if whole {
            break;
        }
    }
}

#[test]
fn what_a_write_that_was_broken_off_has_left_is_cleaned() {
    let (dir, files) = place();
    install_one(&files, &all()[0], 0);
    let left = [
        ".quorate-part",
        ".claude/.quorate-part",
        ".quorate/.quorate-part",
        ".quorate/provisioned/a/before/.quorate-part",
    ];
    left.iter().for_each(|path| std::fs::write(dir.path().join(path), "half").unwrap());
    install_one(&files, &all()[0], 0);
    for path in left {
        assert!(!dir.path().join(path).exists(), "{path}");
    }
}

#[test]
fn two_profiles_share_a_merged_file_and_not_a_whole_one() {
    let origin = Origin { from: "q".to_owned(), at: String::new() };
    let other = |pieces| Package::new("other", "1", pieces).unwrap();
    for first_out in ["other", "runtime-profile/standard"] {
        let (dir, files) = place();
        let before = theirs(dir.path());
        done(put(&files, &first(), REAL));
        let too = |package: &Package| install::install(&files, ".", package, &origin, REAL);
        let whole = too(&other(vec![piece("README.md", Strategy::Overwrite, "x")])).unwrap();
        assert_eq!(codes_of(&whole), ["quorate:profile_target"]);
        done(too(&other(vec![
            piece(".claude/settings.json", Strategy::MergeJsonDeep, "{\"allow\": [\"cat\"], \"other\": 1}"),
            piece(".gitignore", Strategy::Append, "node_modules/\n"),
        ])));
        assert!(done(put(&files, &first(), REAL)).idle);
        let last_out = if first_out == "other" { "runtime-profile/standard" } else { "other" };
        for slug in [first_out, last_out] {
            done(uninstall::uninstall(&files, ".", slug, REAL));
        }
        let mut after = theirs(dir.path());
        if first_out != "other" {
            // A line that another profile appended below is not joined to the line above.
            let ignore = after.get_mut(".gitignore").unwrap().as_mut().unwrap();
            assert_eq!(ignore.0.pop(), Some(b'\n'));
        }
        assert_eq!(after, before, "{first_out} first");
    }
}
