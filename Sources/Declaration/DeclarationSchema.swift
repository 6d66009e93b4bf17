// The form of the files, for editors.

package enum DeclarationSchema {
    /// A JSON Schema (draft 2020-12).
    package static let text = String(decoding: PackageResources.declaration_schema_json, as: UTF8.self)
}
