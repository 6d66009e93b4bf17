// Writes down what comes of a sign-in.
const say = (text) => { document.querySelector("#outcome").textContent += text + "\n"; };
document.addEventListener("PosternSignInOnSuccess", ({detail}) => say("success " + JSON.stringify(detail)));
document.addEventListener("PosternSignInOnFailure", ({detail}) => say("failure " + detail.error));
