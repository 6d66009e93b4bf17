// The form of the files, for editors.

package enum DeclarationSchema {
    /// A JSON Schema (draft 2020-12).
    package static let text = Embedded.declaration_schema_json
}
