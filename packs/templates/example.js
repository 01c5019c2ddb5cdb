import Mustache from "@packferry/templates";

const template = "{{title}} {{{raw}}}\n{{#items}}\n- {{name}}{{#last}}.{{/last}}\n{{/items}}\n{{^none}}nothing{{/none}}{{> end}}";
const view = { title: "<Tea>", raw: "<b>", items: [{ name: "a" }, { name: "b", last: true }], none: [] };
return Mustache.render(template, view, { end: "\nBye {{title}}" });
