"""Programs of the GradBench suite (those of ADBench among them), from their published definitions.

The arrays are NumPy's, as in GradBench. Bundle adjustment and hand tracking stand here as plain loops over
plain floats, and where GradBench wants a Jacobian of residuals, the gradient of their sum of squares is taken.
"""

import math
from math import lgamma

import numpy as np

from .program import Program, rebound
from .small import generator

# ------------------------------------------------------------------------------ Gaussian mixture model


def gmm(alpha, means, logs, lower, points, gamma, m):
    """The log posterior of a mixture of Gaussians, with a Wishart prior on their precisions.

    A precision is the square of a lower triangular matrix: its diagonal is ``exp(logs)``, what lies below is `lower`.
    """
    n, d = points.shape
    diagonal = np.exp(logs)
    sums = np.sum(logs, axis=1)
    centred = points - means[:, None, :]
    scaled = diagonal[:, None, :] * centred + centred @ unpacked(lower, d).swapaxes(1, 2)
    inner = (alpha + sums)[:, None] - 0.5 * np.sum(scaled**2, axis=2)
    penalty = 0.5 * gamma**2 * (np.sum(diagonal**2) + np.sum(lower**2)) - m * np.sum(sums)
    return (
        np.sum(logsumexp(inner))
        - n * logsumexp(alpha)
        - penalty
        + constant(n, d, len(alpha), gamma, m)
    )


def unpacked(lower, d):
    rows, columns = np.tril_indices(d, -1)
    matrices = np.zeros((len(lower), d, d))
    matrices[:, rows, columns] = lower
    return matrices


def logsumexp(x):
    peak = np.max(x, axis=0)
    return peak + np.log(np.sum(np.exp(x - peak), axis=0))


def constant(n, d, k, gamma, m):
    """What does not depend on the parameters."""
    degrees = d + m + 1
    logs = [lgamma(0.5 * (degrees - j)) for j in range(d)]
    volume = 0.25 * d * (d - 1) * math.log(math.pi) + sum(logs)
    prior = degrees * d * math.log(gamma / 2**0.5) - volume
    return k * prior - 0.5 * n * d * math.log(2 * math.pi)


def gmm_by_hand(alpha, means, logs, lower, points, gamma, m):
    """The diagonal is folded into the product, and the triangle is written and read by indices."""
    n, d = points.shape
    k = len(alpha)
    diagonal = np.exp(logs)
    sums = np.add.reduce(logs, axis=1)
    rows, columns = np.tril_indices(d, -1)
    on = np.arange(d)
    matrices = np.zeros((k, d, d))
    matrices[:, rows, columns] = lower
    matrices[:, on, on] = diagonal
    centred = points - means[:, None, :]
    scaled = centred @ matrices.swapaxes(1, 2)
    inner = (alpha + sums)[:, None] - 0.5 * np.add.reduce(scaled * scaled, axis=2)
    peak = np.maximum.reduce(inner, axis=0)
    inner -= peak
    np.exp(inner, out=inner)
    totals = np.add.reduce(inner, axis=0)
    top = np.maximum.reduce(alpha)
    weights = np.exp(alpha - top)
    total = np.add.reduce(weights)
    squares = diagonal * diagonal
    penalty = 0.5 * gamma**2 * (
        np.add.reduce(squares, axis=None) + np.add.reduce(lower * lower, axis=None)
    ) - m * np.add.reduce(sums)
    value = (
        np.add.reduce(peak + np.log(totals))
        - n * (top + np.log(total))
        - penalty
        + constant(n, d, k, gamma, m)
    )
    inner /= totals
    shares = np.add.reduce(inner, axis=1)
    scaled *= -inner[:, :, None]
    dmatrices = scaled.swapaxes(1, 2) @ centred
    dmeans = -np.add.reduce(scaled @ matrices, axis=1)
    dlogs = dmatrices[:, on, on] * diagonal - gamma**2 * squares + (shares + m)[:, None]
    dlower = dmatrices[:, rows, columns] - gamma**2 * lower
    return value, (shares - weights * (n / total), dmeans, dlogs, dlower)


def unpacked_in_autograd(lower, d):
    """Without writing into an array: a product with a matrix of zeros and ones."""
    import autograd.numpy as anp

    rows, columns = np.tril_indices(d, -1)
    places = np.zeros((len(rows), d * d))
    places[np.arange(len(rows)), rows * d + columns] = 1.0
    return anp.reshape(anp.dot(lower, places), (-1, d, d))


def unpacked_in_jax(lower, d):
    import jax.numpy as jnp

    rows, columns = np.tril_indices(d, -1)
    return jnp.zeros((len(lower), d, d)).at[:, rows, columns].set(lower)


def unpacked_in_torch(lower, d):
    import torch

    rows, columns = torch.tril_indices(d, d, -1)
    matrices = torch.zeros((len(lower), d, d))
    matrices[:, rows, columns] = lower
    return matrices


def mixture(d=10, k=25, n=1000):
    draw = generator()
    return (
        draw.normal(size=k),
        draw.uniform(size=(k, d)),
        draw.normal(size=(k, d)) * 0.3,
        draw.normal(size=(k, d * (d - 1) // 2)) * 0.3,
        draw.normal(size=(n, d)),
        1.0,
        2,
    )


# ----------------------------------------------------------------------------------------------- LSTM


def lstm(weights, ends, state, sequence):
    """How badly a stack of LSTM layers foretells a sequence; every layer has a row of weights and one of biases."""
    hidden = list(state[::2])
    cells = list(state[1::2])
    total = 0.0
    for t in range(len(sequence) - 1):
        x = sequence[t] * ends[0]
        for k in range(len(hidden)):
            hidden[k], cells[k] = lstm_step(
                weights[2 * k], weights[2 * k + 1], hidden[k], cells[k], x
            )
            x = hidden[k]
        foretold = x * ends[1] + ends[2]
        norm = np.log(np.sum(np.exp(foretold)) + 2)
        total = total + np.sum(sequence[t + 1] * (foretold - norm))
    return -total / ((len(sequence) - 1) * len(sequence[0]))


def lstm_step(weight, bias, hidden, cell, x):
    n = len(hidden)
    gates = np.concatenate((x, hidden, x, hidden)) * weight + bias
    forget = sigmoid(gates[:n])
    update = sigmoid(gates[n : 2 * n])
    output = sigmoid(gates[2 * n : 3 * n])
    cell = cell * forget + update * np.tanh(gates[3 * n :])
    return output * np.tanh(cell), cell


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(weights, ends, state, sequence):
    layers, n = len(state) // 2, state.shape[1]
    hidden, cells = list(state[::2]), list(state[1::2])
    seen, tops = [], []
    total = 0.0
    for t in range(len(sequence) - 1):
        x = sequence[t] * ends[0]
        for k in range(layers):
            ins = np.concatenate((x, hidden[k], x, hidden[k]))
            gates = ins * weights[2 * k] + weights[2 * k + 1]
            s = 1 / (1 + np.exp(-gates[: 3 * n]))
            change = np.tanh(gates[3 * n :])
            before = cells[k]
            cells[k] = cell = before * s[:n] + s[n : 2 * n] * change
            squashed = np.tanh(cell)
            hidden[k] = x = s[2 * n :] * squashed
            seen.append((ins, s, change, before, squashed))
        foretold = x * ends[1] + ends[2]
        e = np.exp(foretold)
        sums = np.add.reduce(e) + 2
        gold = sequence[t + 1]
        total += np.add.reduce(gold * (foretold - np.log(sums)))
        tops.append((x, e, sums, gold))
    scale = -1 / ((len(sequence) - 1) * n)
    dweights, dends, dstate = np.zeros_like(weights), np.zeros_like(ends), np.zeros_like(state)
    dhidden, dcells = dstate[::2], dstate[1::2]
    dgates = np.empty(4 * n)
    dsigmoids, dforget, dupdate = dgates[: 3 * n], dgates[:n], dgates[n : 2 * n]
    doutput, dchange = dgates[2 * n : 3 * n], dgates[3 * n :]
    for t in range(len(sequence) - 2, -1, -1):
        x, e, sums, gold = tops[t]
        d = scale * (gold - e * (np.add.reduce(gold) / sums))
        dends[2] += d
        dends[1] += d * x
        dx = d * ends[1]
        for k in range(layers - 1, -1, -1):
            ins, s, change, before, squashed = seen.pop()
            dh = dhidden[k] + dx
            dc = dcells[k]
            dc += dh * s[2 * n :] * (1 - squashed * squashed)
            np.multiply(dc, before, out=dforget)
            np.multiply(dc, change, out=dupdate)
            np.multiply(dh, squashed, out=doutput)
            dsigmoids *= s * (1 - s)
            np.multiply(dc * s[n : 2 * n], 1 - change * change, out=dchange)
            dc *= s[:n]
            dweights[2 * k] += dgates * ins
            dweights[2 * k + 1] += dgates
            dins = dgates * weights[2 * k]
            dx = dins[:n] + dins[2 * n : 3 * n]
            np.add(dins[n : 2 * n], dins[3 * n :], out=dhidden[k])
        dends[0] += dx * sequence[t]
    return total * scale, (dweights, dends, dstate)


def lstm_in_jax(weights, ends, state, sequence):
    """The loop as `lax.scan`: unrolled, it takes minutes to compile."""
    import jax
    import jax.numpy as jnp

    step_in_jax = rebound(lstm_step, np=jnp)

    def step(states, inputs):
        now, after = inputs
        x = now * ends[0]
        states = list(states)
        for k in range(0, len(states), 2):
            states[k : k + 2] = step_in_jax(weights[k], weights[k + 1], *states[k : k + 2], x)
            x = states[k]
        foretold = x * ends[1] + ends[2]
        norm = jnp.log(jnp.sum(jnp.exp(foretold)) + 2)
        return tuple(states), jnp.sum(after * (foretold - norm))

    _, scores = jax.lax.scan(step, tuple(state), (sequence[:-1], sequence[1:]))
    return -jnp.mean(scores) / len(sequence[0])


def text(steps=40, layers=2, n=14):
    draw = generator()
    return (
        draw.normal(size=(2 * layers, 4 * n)),
        draw.normal(size=(3, n)),
        draw.normal(size=(2 * layers, n)),
        draw.integers(2, size=(steps, n)).astype(float),
    )


# -------------------------------------------------------------------------------------------- k-means


def kmeans(centroids, points):
    """The squared distances of points to the centroids next to them, in all."""
    squares = np.sum(points**2, axis=1)[:, None] + np.sum(centroids**2, axis=1)
    distances = squares - 2 * (points @ centroids.T)
    return np.sum(np.min(distances, axis=1))


def kmeans_by_hand(centroids, points):
    distances = np.add.reduce(points * points, axis=1)[:, None] + np.add.reduce(
        centroids * centroids, axis=1
    )
    products = points.dot(centroids.T)
    products *= 2
    distances -= products
    nearest = distances.argmin(axis=1)
    every = np.arange(len(points))
    value = np.add.reduce(distances[every, nearest])
    distances.fill(0.0)
    distances[every, nearest] = 2.0
    counts = np.add.reduce(distances, axis=0)
    return value, counts[:, None] * centroids - distances.T.dot(points)


def kmeans_for_tangent(centroids, points):
    """It knows no attributes."""
    squares = np.sum(points * points, axis=1)[:, None] + np.sum(centroids * centroids, axis=1)
    distances = squares - 2.0 * np.dot(points, np.transpose(centroids))
    return np.sum(np.min(distances, axis=1))


def clusters(k=100, n=10_000, d=16):
    points = generator().uniform(size=(n, d))
    return points[-k:] + 0.01, points


# ------------------------------------------------------------------------------------------------ ODE


def ode(x, steps):
    """y₀' = x₀, yᵢ' = xᵢ yᵢ₋₁ from zero to time 2 by Runge and Kutta; the sum of the state at the end."""
    h = 2.0 / steps
    y = np.zeros(len(x))
    for _ in range(steps):
        k1 = slope(x, y)
        k2 = slope(x, y + h / 2 * k1)
        k3 = slope(x, y + h / 2 * k2)
        k4 = slope(x, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.sum(y)


def slope(x, y):
    return np.concatenate((x[:1], x[1:] * y[:-1]))


def ode_by_hand(x, steps):
    h = 2.0 / steps
    first, rest = x[:1], x[1:]
    y = np.zeros(len(x))
    seen = []
    for _ in range(steps):
        k1 = np.concatenate((first, rest * y[:-1]))
        y2 = y + h / 2 * k1
        k2 = np.concatenate((first, rest * y2[:-1]))
        y3 = y + h / 2 * k2
        k3 = np.concatenate((first, rest * y3[:-1]))
        y4 = y + h * k3
        k4 = np.concatenate((first, rest * y4[:-1]))
        seen.append((y[:-1], y2[:-1], y3[:-1], y4[:-1]))
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    dx, dy = np.zeros(len(x)), np.ones(len(x))
    drest = dx[1:]
    for y1, y2, y3, y4 in reversed(seen):
        d4 = h / 6 * dy
        d3 = 2 * d4
        d2 = d3.copy()
        dy = dy.copy()
        dx[0] += d4[0]
        drest += d4[1:] * y4
        back = rest * d4[1:]
        dy[:-1] += back
        d3[:-1] += h * back
        dx[0] += d3[0]
        drest += d3[1:] * y3
        back = rest * d3[1:]
        dy[:-1] += back
        d2[:-1] += h / 2 * back
        dx[0] += d2[0]
        drest += d2[1:] * y2
        back = rest * d2[1:]
        dy[:-1] += back
        d4[:-1] += h / 2 * back  # from here on the cotangent of k1
        dx[0] += d4[0]
        drest += d4[1:] * y1
        dy[:-1] += rest * d4[1:]
    return np.add.reduce(y), dx


def ode_in_jax(x, steps):
    """The loop as `lax.scan`, as GradBench has it."""
    import jax
    import jax.numpy as jnp

    f = rebound(slope, np=jnp)
    h = 2.0 / steps

    def step(y, _):
        k1 = f(x, y)
        k2 = f(x, y + h / 2 * k1)
        k3 = f(x, y + h / 2 * k2)
        k4 = f(x, y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return jnp.sum(jax.lax.scan(step, jnp.zeros(len(x)), None, length=steps)[0])


def rates(n=1000, steps=50):
    return generator().uniform(size=n), steps


# ---------------------------------------------------------------------------------- bundle adjustment


def bundle_adjustment(cameras, points, weights, observations, features):
    """How far points, seen by cameras, fall from where they were found in the pictures.

    A camera: rotation (3), centre (3), focal length, principal point (2), radial distortion (2).
    """
    total = 0.0
    for (camera, point), weight, feature in zip(observations, weights, features):
        u, v = projected(cameras[camera], points[point])
        u = weight * (u - feature[0])
        v = weight * (v - feature[1])
        w = 1 - weight * weight
        total = total + u * u + v * v + w * w
    return total


def projected(camera, point):
    x, y, z = rotated(camera[:3], [point[i] - camera[3 + i] for i in range(3)])
    u, v = x / z, y / z
    square = u * u + v * v
    stretch = (1 + camera[9] * square + camera[10] * square * square) * camera[6]
    return u * stretch + camera[7], v * stretch + camera[8]


def rotated(rotation, point):
    """By the length of `rotation` around its direction, as Rodrigues does it."""
    a, b, c = rotation
    x, y, z = point
    square = a * a + b * b + c * c
    if square == 0.0:
        return x + b * z - c * y, y + c * x - a * z, z + a * y - b * x
    angle = math.sqrt(square)
    cosine, sine = math.cos(angle), math.sin(angle)
    a, b, c = a / angle, b / angle, c / angle
    along = (a * x + b * y + c * z) * (1 - cosine)
    return (
        x * cosine + (b * z - c * y) * sine + a * along,
        y * cosine + (c * x - a * z) * sine + b * along,
        z * cosine + (a * y - b * x) * sine + c * along,
    )


def bundle_adjustment_by_hand(cameras, points, weights, observations, features):
    total = 0.0
    dcameras = [[0.0] * 11 for _ in cameras]
    dpoints = [[0.0] * 3 for _ in points]
    dweights = []
    for (camera, point), weight, feature in zip(observations, weights, features):
        r1, r2, r3, c1, c2, c3, focal, u0, v0, k1, k2 = cameras[camera]
        p1, p2, p3 = points[point]
        x, y, z = p1 - c1, p2 - c2, p3 - c3
        # out into the picture (the cameras of the benchmark are all turned: no angle is zero)
        square = r1 * r1 + r2 * r2 + r3 * r3
        angle = math.sqrt(square)
        cosine, sine = math.cos(angle), math.sin(angle)
        a, b, c = r1 / angle, r2 / angle, r3 / angle
        dot = a * x + b * y + c * z
        along = dot * (1 - cosine)
        xs, ys, zs = b * z - c * y, c * x - a * z, a * y - b * x
        xr = x * cosine + xs * sine + a * along
        yr = y * cosine + ys * sine + b * along
        zr = z * cosine + zs * sine + c * along
        u, v = xr / zr, yr / zr
        size = u * u + v * v
        stretch = 1 + k1 * size + k2 * size * size
        zoom = stretch * focal
        eu = u * zoom + u0 - feature[0]
        ev = v * zoom + v0 - feature[1]
        fu, fv = weight * eu, weight * ev
        w = 1 - weight * weight
        total += fu * fu + fv * fv + w * w
        # and back
        fu *= 2
        fv *= 2
        dweights.append(fu * eu + fv * ev - 4 * w * weight)
        du, dv = fu * weight, fv * weight
        d = dcameras[camera]
        d[7] += du
        d[8] += dv
        dzoom = du * u + dv * v
        d[6] += dzoom * stretch
        dstretch = dzoom * focal
        d[9] += dstretch * size
        d[10] += dstretch * size * size
        dsize = 2 * dstretch * (k1 + 2 * k2 * size)
        du = du * zoom + dsize * u
        dv = dv * zoom + dsize * v
        dx, dy = du / zr, dv / zr
        dz = -(dx * u + dy * v)
        dalong = dx * a + dy * b + dz * c
        dcosine = dx * x + dy * y + dz * z - dalong * dot
        dsine = dx * xs + dy * ys + dz * zs
        ddot = dalong * (1 - cosine)
        dxs, dys, dzs = dx * sine, dy * sine, dz * sine
        da = dx * along + ddot * x - dys * z + dzs * y
        db = dy * along + ddot * y + dxs * z - dzs * x
        dc = dz * along + ddot * z - dxs * y + dys * x
        dx = dx * cosine + ddot * a + dys * c - dzs * b
        dy = dy * cosine + ddot * b - dxs * c + dzs * a
        dz = dz * cosine + ddot * c + dxs * b - dys * a
        dangle = dsine * cosine - dcosine * sine - (da * a + db * b + dc * c) / angle
        d[0] += da / angle + dangle * a
        d[1] += db / angle + dangle * b
        d[2] += dc / angle + dangle * c
        d[3] -= dx
        d[4] -= dy
        d[5] -= dz
        d = dpoints[point]
        d[0] += dx
        d[1] += dy
        d[2] += dz
    return total, (dcameras, dpoints, dweights)


def pictures(cameras=3, points=10, observations=30):
    draw = generator()
    centre = np.concatenate((np.zeros(5), [-8.0, 2.0, 0.1, -0.1, 0.05, -0.01]))
    spread = np.array([0.3] * 3 + [0.5] * 3 + [0.1] * 3 + [0.01] * 2)
    return (
        (centre + spread * draw.normal(size=(cameras, 11))).tolist(),
        draw.normal(size=(points, 3)).tolist(),
        draw.uniform(0.5, 1.5, size=observations).tolist(),
        tuple((k % cameras, k % points) for k in range(observations)),
        draw.normal(size=(observations, 2)).tolist(),
    )


# -------------------------------------------------------------------------------------- hand tracking

FINGERS = 5
# The wrist, then four bones a finger, the first of each on the wrist, then the forearm.
PARENTS = (-1, *(parent for k in range(FINGERS) for parent in (0, *range(4 * k + 1, 4 * k + 4))), 0)


def hand_tracking(theta, base, inverse, skin, shares, vertices, targets):
    """How far the skin of a hand with these joint angles is from where it was seen.

    theta       global rotation (3) and translation (3), then four angles a finger
    base        where each bone lies on its parent: matrices of 3x4, a rotation and a translation
    inverse     from the hand at rest back to each bone
    skin        the bones that each vertex hangs on; `shares`: how much on each
    """
    transforms = []
    absolutes = []
    for bone, angles in enumerate(bone_angles(theta)):
        relative = composed(base[bone], euler(*angles))
        parent = PARENTS[bone]
        absolutes.append(relative if parent < 0 else composed(absolutes[parent], relative))
        transforms.append(composed(absolutes[bone], inverse[bone]))
    turn = axis_angle(theta[0], theta[1], theta[2])
    total = 0.0
    for bones, share, vertex, target in zip(skin, shares, vertices, targets):
        position = [0.0, 0.0, 0.0]
        for bone, part in zip(bones, share):
            moved = applied(transforms[bone], vertex)
            for i in range(3):
                position[i] = position[i] + part * moved[i]
        position = applied(turn, position)
        for i in range(3):
            off = target[i] - position[i] - theta[3 + i]
            total = total + off * off
    return total


def bone_angles(theta):
    """Around x, z and y. The first bone of a finger turns in two ways, two more in one, the last not at all."""
    angles = [(0.0, 0.0, 0.0)]
    for k in range(6, 6 + 4 * FINGERS, 4):
        angles.append((theta[k], theta[k + 1], 0.0))
        angles.append((theta[k + 2], 0.0, 0.0))
        angles.append((theta[k + 3], 0.0, 0.0))
        angles.append((0.0, 0.0, 0.0))
    return [*angles, (0.0, 0.0, 0.0)]


def euler(x, z, y):
    cx, cy, cz = math.cos(x), math.cos(y), math.cos(z)
    sx, sy, sz = math.sin(x), math.sin(y), math.sin(z)
    return [
        [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx, 0.0],
        [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx, 0.0],
        [-sy, cy * sx, cy * cx, 0.0],
    ]


def axis_angle(a, b, c):
    angle = math.sqrt(a * a + b * b + c * c)
    if angle < 1e-4:
        return [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    x, y, z = a / angle, b / angle, c / angle
    s, co = math.sin(angle), math.cos(angle)
    rest = 1 - co
    return [
        [x * x * rest + co, x * y * rest - z * s, x * z * rest + y * s, 0.0],
        [x * y * rest + z * s, y * y * rest + co, y * z * rest - x * s, 0.0],
        [x * z * rest - y * s, y * z * rest + x * s, z * z * rest + co, 0.0],
    ]


def composed(a, b):
    """First b, then a."""
    product = []
    for i in range(3):
        row = []
        for j in range(4):
            total = a[i][3] if j == 3 else 0.0
            for k in range(3):
                total = total + a[i][k] * b[k][j]
            row.append(total)
        product.append(row)
    return product


def applied(a, point):
    moved = []
    for i in range(3):
        total = a[i][3]
        for k in range(3):
            total = total + a[i][k] * point[k]
        moved.append(total)
    return moved


def hand_tracking_by_hand(theta, base, inverse, skin, shares, vertices, targets):
    angles = bone_angles(theta)
    turns, relatives, absolutes, transforms = [], [], [], []
    for bone, around in enumerate(angles):
        turns.append(euler(*around))
        relatives.append(times(base[bone], turns[bone]))
        parent = PARENTS[bone]
        absolutes.append(
            relatives[bone] if parent < 0 else times(absolutes[parent], relatives[bone])
        )
        transforms.append(times(absolutes[bone], inverse[bone]))
    r1, r2, r3, t1, t2, t3 = theta[:6]
    (g11, g12, g13, _), (g21, g22, g23, _), (g31, g32, g33, _) = axis_angle(r1, r2, r3)
    total = 0.0
    dturn = [[0.0] * 3 for _ in range(3)]
    dtheta = [0.0] * len(theta)
    dtransforms = [None] * len(base)
    for bones, share, (x, y, z), target in zip(skin, shares, vertices, targets):
        px = py = pz = 0.0
        for bone, part in zip(bones, share):
            (a, b, c, d), (e, f, g, h), (i, j, k, l) = transforms[bone]
            px += part * (a * x + b * y + c * z + d)
            py += part * (e * x + f * y + g * z + h)
            pz += part * (i * x + j * y + k * z + l)
        ox = target[0] - (g11 * px + g12 * py + g13 * pz) - t1
        oy = target[1] - (g21 * px + g22 * py + g23 * pz) - t2
        oz = target[2] - (g31 * px + g32 * py + g33 * pz) - t3
        total += ox * ox + oy * oy + oz * oz
        ox, oy, oz = -2 * ox, -2 * oy, -2 * oz
        dtheta[3] += ox
        dtheta[4] += oy
        dtheta[5] += oz
        for row, o in zip(dturn, (ox, oy, oz)):
            row[0] += o * px
            row[1] += o * py
            row[2] += o * pz
        ds = (
            g11 * ox + g21 * oy + g31 * oz,
            g12 * ox + g22 * oy + g32 * oz,
            g13 * ox + g23 * oy + g33 * oz,
        )
        for bone, part in zip(bones, share):
            if dtransforms[bone] is None:
                dtransforms[bone] = [[0.0] * 4 for _ in range(3)]
            for row, d in zip(dtransforms[bone], ds):
                d *= part
                row[0] += d * x
                row[1] += d * y
                row[2] += d * z
                row[3] += d
    dabsolutes = [[[0.0] * 4 for _ in range(3)] for _ in base]
    for bone in range(len(base) - 1, -1, -1):
        dabsolute = dabsolutes[bone]
        if dtransforms[bone] is not None:
            back_left(dabsolute, dtransforms[bone], inverse[bone])
        parent = PARENTS[bone]
        drelative = dabsolute
        if parent >= 0:
            back_left(dabsolutes[parent], dabsolute, relatives[bone])
            drelative = back_right(absolutes[parent], dabsolute)
        finger, joint = divmod(bone - 1, 4)
        if 0 <= finger < FINGERS and joint < 3:
            # d of the rotation by each of its angles: an angle that is not free is zero
            (d11, d12, d13, _), (d21, d22, d23, _), (d31, d32, d33, _) = back_right(
                base[bone], drelative
            )
            x, z, _ = angles[bone]
            cx, sx, cz, sz = math.cos(x), math.sin(x), math.cos(z), math.sin(z)
            dx = d12 * sz * sx + d13 * sz * cx - d22 * cz * sx - d23 * cz * cx + d32 * cx - d33 * sx
            dz = (
                -d11 * sz - d12 * cz * cx + d13 * cz * sx + d21 * cz - d22 * sz * cx + d23 * sz * sx
            )
            if joint == 0:
                dtheta[6 + 4 * finger] += dx
                dtheta[7 + 4 * finger] += dz
            else:
                dtheta[7 + 4 * finger + joint] += dx
    # the global rotation
    angle = math.sqrt(r1 * r1 + r2 * r2 + r3 * r3)
    x, y, z = r1 / angle, r2 / angle, r3 / angle
    s, co = math.sin(angle), math.cos(angle)
    (d11, d12, d13), (d21, d22, d23), (d31, d32, d33) = dturn
    d12p, d13p, d23p = d12 + d21, d13 + d31, d23 + d32
    d21m, d13m, d32m = d21 - d12, d13 - d31, d32 - d23
    quadratic = x * x * d11 + y * y * d22 + z * z * d33 + x * y * d12p + x * z * d13p + y * z * d23p
    rest = 1 - co
    dangle = co * (z * d21m + y * d13m + x * d32m) - s * (d11 + d22 + d33 - quadratic)
    dx = rest * (2 * x * d11 + y * d12p + z * d13p) + s * d32m
    dy = rest * (2 * y * d22 + x * d12p + z * d23p) + s * d13m
    dz = rest * (2 * z * d33 + x * d13p + y * d23p) + s * d21m
    dangle -= (dx * x + dy * y + dz * z) / angle
    dtheta[0] = dx / angle + dangle * x
    dtheta[1] = dy / angle + dangle * y
    dtheta[2] = dz / angle + dangle * z
    return total, dtheta


def times(a, b):
    """`composed`, its loops written out."""
    (b11, b12, b13, b14), (b21, b22, b23, b24), (b31, b32, b33, b34) = b
    return [
        [
            x * b11 + y * b21 + z * b31,
            x * b12 + y * b22 + z * b32,
            x * b13 + y * b23 + z * b33,
            x * b14 + y * b24 + z * b34 + t,
        ]
        for x, y, z, t in a
    ]


def back_left(da, dproduct, b):
    """Adds to `da` what the cotangent of `times(a, b)` says of a."""
    (b11, b12, b13, b14), (b21, b22, b23, b24), (b31, b32, b33, b34) = b
    for row, (x, y, z, t) in zip(da, dproduct):
        row[0] += x * b11 + y * b12 + z * b13 + t * b14
        row[1] += x * b21 + y * b22 + z * b23 + t * b24
        row[2] += x * b31 + y * b32 + z * b33 + t * b34
        row[3] += t


def back_right(a, dproduct):
    """What the cotangent of `times(a, b)` says of b."""
    one, two, three = dproduct
    return [[p * x + q * y + r * z for x, y, z in zip(one, two, three)] for p, q, r in zip(*a)][:3]


def seen_hand(vertices=20):
    draw = generator()
    bones = len(PARENTS)
    lying = [composed(axis_angle(*draw.normal(size=3).tolist()), shift()) for _ in range(bones)]
    back = [composed(axis_angle(*draw.normal(size=3).tolist()), shift()) for _ in range(bones)]
    shares = draw.uniform(0.2, 0.8, size=vertices)
    return (
        (0.5 * draw.normal(size=6 + 4 * FINGERS)).tolist(),
        lying,
        back,
        tuple((k % bones, (k + 1) % bones) for k in range(vertices)),
        [[share, 1 - share] for share in shares.tolist()],
        draw.normal(size=(vertices, 3)).tolist(),
        draw.normal(size=(vertices, 3)).tolist(),
    )


def shift():
    return [[1.0, 0.0, 0.0, 0.3], [0.0, 1.0, 0.0, 0.1], [0.0, 0.0, 1.0, -0.2]]


PROGRAMS = [
    Program(
        "gmm",
        gmm,
        gmm_by_hand,
        mixture,
        {"d": 3, "k": 2, "n": 5},
        (0, 1, 2, 3),
        1.4,
        {
            "autograd": {"unpacked": unpacked_in_autograd},
            "jax": {"unpacked": unpacked_in_jax},
            "torch": {"unpacked": unpacked_in_torch},
        },
    ),
    Program(
        "gradbench-lstm",
        lstm,
        lstm_by_hand,
        text,
        {"steps": 3, "n": 2},
        (0, 1, 2),
        1.1,
        {"jax.jit": lstm_in_jax},
    ),
    Program(
        "kmeans",
        kmeans,
        kmeans_by_hand,
        clusters,
        {"k": 3, "n": 12, "d": 2},
        0,
        1.05,
        {"tangent": kmeans_for_tangent},
    ),
    Program("ode", ode, ode_by_hand, rates, {"n": 5, "steps": 2}, 0, 1.1, {"jax.jit": ode_in_jax}),
    Program(
        "bundle-adjustment",
        bundle_adjustment,
        bundle_adjustment_by_hand,
        pictures,
        {"cameras": 2, "points": 3, "observations": 6},
        (0, 1, 2),
        1.0,
    ),
    Program(
        "hand-tracking",
        hand_tracking,
        hand_tracking_by_hand,
        seen_hand,
        {"vertices": 22},
        0,
        1.0,
    ),
]
