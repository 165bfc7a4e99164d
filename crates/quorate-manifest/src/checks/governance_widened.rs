//! `quorate:governance_widened`: a document binds a governance file with a key that its ancestors' governance does not have
//! (D9). The root decides who signs for an assembly; a view may only remove keys.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let with_keys =
        view.policies.files.iter().filter_map(|file| Some((file, file.governance.keys.as_ref()?)));
    let pairs: Vec<_> = with_keys.collect();
    for ((above, allowed), (below, keys)) in pairs.iter().zip(pairs.iter().skip(1)) {
        for key in keys.iter().filter(|key| !allowed.iter().any(|other| other.public == key.public)) {
            let message = format!("{} has a key that {} does not have", below.file, above.file);
            let body = Body::new(message)
                .at(below.bound_at.clone())
                .related(key.place.clone(), "this key")
                .related(above.bound_at.clone(), "an ancestor binds its keys here")
                .help("remove the key, or add it to the ancestor's governance file");
            view.refuse(codes::GOVERNANCE_WIDENED, body);
        }
    }
}
