//! `quorate:governance_widened`: a document binds a governance file with a key that its ancestors' governance does not have
//! (D9). Who signs for an assembly is its root's to say; a view may only take keys away.

use quorate_diagnostics::{Body, codes};

use crate::assembly::check_context::CheckContext;

pub(super) fn check(view: &CheckContext<'_, '_>) {
    let with_keys = view.policies.files.iter().filter_map(|one| Some((one, one.governance.keys.as_ref()?)));
    let pairs: Vec<_> = with_keys.collect();
    for ((above, theirs), (below, own)) in pairs.iter().zip(pairs.iter().skip(1)) {
        for key in own.iter().filter(|key| !theirs.iter().any(|one| one.public == key.public)) {
            let message = format!("{} has a key that {} does not have", below.file, above.file);
            let body = Body::new(message)
                .at(below.bound_at.clone())
                .related(key.place.clone(), "this key")
                .related(above.bound_at.clone(), "an ancestor binds its keys here")
                .help("take the key out, or put it into the ancestor's governance, where its author decides");
            view.refuse(codes::GOVERNANCE_WIDENED, body);
        }
    }
}
