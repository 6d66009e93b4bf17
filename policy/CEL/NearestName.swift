// "Did you mean": the declared name with the smallest edit distance.

import Support

/// The candidate with the smallest edit distance to `name`, if it is close enough to be a typing
/// error. The first in alphabetical order wins a tie, so that messages are always the same.
package func nearestName(to name: String, among candidates: [String]) -> String? {
    guard name.utf8.count <= 64 else { return nil }
    // For a name of one or two letters, one edit is too much.
    let limit = name.utf8.count < 3 ? 0 : max(1, min(4, name.utf8.count / 3))
    guard limit > 0 else { return nil }
    var best: (distance: Int, name: String)?
    for candidate in candidates.sorted() where abs(candidate.utf8.count - name.utf8.count) <= limit
    {
        let distance = editDistance(name, candidate)
        if distance <= limit, distance < best?.distance ?? Int.max { best = (distance, candidate) }
    }
    return best?.name
}

/// "; did you mean …?" or nothing.
package func suggestion(for name: String, among candidates: [String]) -> String {
    nearestName(to: name, among: candidates).map { "; did you mean '\($0)'?" } ?? ""
}
