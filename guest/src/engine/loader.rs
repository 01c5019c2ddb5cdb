//! The normaliser and the loader, as rquickjs wants them.

use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Exception, Module, Result};

use super::{PREFIX, Shared};
use crate::resolve::resolve;
use crate::table::Source;

/// Answers which module an import means. The boundary of the guest.
pub(super) struct Names(pub(super) Rc<Shared>);

impl Resolver for Names {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let Self(shared) = self;
        resolve(&shared.table, shared.phase.get(), base, name).map_err(|denial| {
            let importer = shared.table.file(base).map(|file| file.pack.clone());
            shared.denied_to.replace(importer);
            Exception::throw_message(ctx, &denial.to_string())
        })
    }
}

/// Gives the files that [`Names`] named.
pub(super) struct Files(pub(super) Rc<Shared>);

impl Loader for Files {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let Self(shared) = self;
        let file = shared.table.file(name).ok_or_else(|| Error::new_loading(name))?;
        let text = match &file.source {
            Source::Authored(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
                Err(_) => return Err(Exception::throw_message(ctx, &format!("{name} is not UTF-8"))),
            },
            Source::Facade(_, text) => text,
        };
        Module::declare(ctx.clone(), name, format!("{PREFIX}{text}"))
    }
}
