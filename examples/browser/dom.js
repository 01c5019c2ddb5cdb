//! Elements: found by id, and made. Text is set as text, never as HTML.

/** The element with this id. */
export const find = (id) => document.getElementById(id);

/** A new element with these properties and children. */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
