// The page on which a developer chooses and copies a sign-in button. It works without scripts,
// except for PNG.

import API
import HTTP
import Hummingbird
import Languages
import Support

struct SandboxButtonPage {
    /// A parameter of the button: its names in the form and in the copied lines, and its values; a
    /// range for a number.
    private struct Field {
        let name: String
        let label: String
        /// The default value, which need not be written.
        let usual: String
        var values: [String] = []
        var range: ClosedRange<Int>?
    }

    private static let fields = [
        Field(
            name: "kind", label: "Action", usual: ButtonKind.signIn.rawValue,
            values: ButtonKind.allCases.map(\.rawValue)),
        Field(
            name: "style", label: "Style", usual: SignInButton.Style.dark.rawValue,
            values: SignInButton.Style.allCases.map(\.rawValue)),
        Field(
            name: "logo", label: "Logo", usual: SignInButton.Logo.beside.rawValue,
            values: SignInButton.Logo.allCases.map(\.rawValue)),
        Field(
            name: "border", label: "Border", usual: "",
            values: [""] + SignInButton.Border.allCases.map(\.rawValue)),
        Field(
            name: "height", label: "Height in pixels", usual: "\(SignInButton.usualHeight)",
            range: SignInButton.heights),
        Field(name: "width", label: "Width in pixels", usual: "", range: SignInButton.widths),
        Field(
            name: "radius", label: "Radius in pixels", usual: "\(SignInButton.usualRadius)",
            range: SignInButton.radii),
        Field(
            name: "lang", label: "Language", usual: "",
            values: [""] + ((try? Languages.builtIn().all.map(\.tag)) ?? [])),
    ]

    private let url: String
    private let clientID: String
    /// The chosen values by parameter, without the default ones.
    private var chosen: [String: String] = [:]

    /// Throws `Problem` (400) for a parameter that no button has.
    init(_ request: Request, url: String, clientID: String) throws {
        (self.url, self.clientID) = (url, clientID)
        let query = try request.query(Set(Self.fields.map { WireText($0.name) }))
        for field in Self.fields {
            guard let text = query[WireText(field.name)]?.text, !text.hasSameOctets(as: "") else {
                continue
            }
            let value =
                if let range = field.range {
                    Int(text).flatMap { range.contains($0) ? "\($0)" : nil }
                } else {
                    field.values.first { $0.hasSameOctets(as: text) }
                }
            guard let value else {
                throw Problem.malformed("\(field.name) has no such value: see the form")
            }
            if !value.hasSameOctets(as: field.usual) { chosen[field.name] = value }
        }
    }

    /// In the order of the form.
    private var parameters: [(name: String, value: String)] {
        Self.fields.compactMap { field in chosen[field.name].map { (field.name, $0) } }
    }

    private var imageURL: String {
        let query = parameters.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        return "/auth/button.svg" + (query.isEmpty ? "" : "?\(query)")
    }

    /// Throws if a template does not parse.
    func render() throws -> String {
        let attributes = parameters.map { " data-\($0.name)=\"\($0.value)\"" }.joined()
        let script = """
            <div class="postern-sign-in" data-client-id="\(clientID)"
              data-redirect-uri="https://app.example/signed-in" data-mode="popup"\(attributes)></div>
            <script src="\(url)/auth/sign-in.js"></script>
            """
        let image = "<img src=\"\(HTMLText.escaped(url + imageURL))\" alt=\"Sign in\">"
        let fields = Self.fields.map { field -> [String: Any] in
            let value = chosen[field.name] ?? field.usual
            var values: [String: Any] = ["name": field.name, "label": field.label, "value": value]
            if let range = field.range {
                (values["least"], values["most"], values["is_number"]) = (
                    "\(range.lowerBound)", "\(range.upperBound)", true
                )
            } else {
                values["options"] = field.values.map { option in
                    [
                        "value": option, "text": option.isEmpty ? "as usual" : option,
                        "is_chosen": option.hasSameOctets(as: value),
                    ] as [String: Any]
                }
            }
            return values
        }
        let content = try HTMLTemplate(Embedded.button_mustache).render(
            ["fields": fields, "image": imageURL, "script": script, "link": image] as [String: Any])
        return try HTMLTemplate(Embedded.layout_mustache).render(
            ["title": "Sign-in button", "is_narrow": false, "content": content] as [String: Any])
    }
}
