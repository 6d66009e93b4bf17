// Texts for users about errors that were also written for operators.

import Database
import Languages

extension Languages {
    /// The words for a text of ours. Nil for a text that is not for users, such as one that names a
    /// command for operators: the catalogues contain only texts for users.
    func words(_ text: String, in language: Catalogue) -> String? {
        isForUsers(text) ? language.text(text) : nil
    }

    /// Why the store refuses. The catalogues have `{n}` in place of a number.
    func sentence(of refusal: StoreFailure, in language: Catalogue) -> String {
        let text = Self.sentence(refusal.publicMessage)
        if let words = words(text, in: language) { return words }
        if let number = text.firstMatch(of: /[0-9]+/)?.output {
            let place = text.replacing(number, with: "{n}")
            if isForUsers(place) { return language.text(place, ["n": String(number)]) }
        }
        return switch refusal.code {
        case .refused(.notFound): language.text("This is not there any longer. Reload the page.")
        case .refused(.frozen): language.text("The operator of this service has frozen this.")
        case .refused(.exists): language.text("That is there already.")
        case .refused(.limit):
            language.text(
                "That was too often, or too much. Try again later, or remove something first.")
        default: language.text("That is not possible at the moment. Reload the page and try again.")
        }
    }

    /// As a sentence: `the code is wrong` → `The code is wrong.`
    static func sentence(_ text: String) -> String {
        text.prefix(1).uppercased() + text.dropFirst() + (text.hasSuffix(".") ? "" : ".")
    }
}
